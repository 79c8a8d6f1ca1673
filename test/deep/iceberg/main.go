// SPDX-License-Identifier: Apache-2.0

// Writes manifests and lists of every version that iceberg-go writes into a directory.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iceberg-go"
)

const snapshot = int64(7012345678901234567)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(value int64) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(value))
}

func entry(version int, spec iceberg.PartitionSpec, i int64) iceberg.ManifestEntry {
	partition := map[int]any{1000: i, 1001: fmt.Sprintf("part %d", i)}
	if i%5 == 0 {
		partition[1001] = nil
	}
	file, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData,
		fmt.Sprintf("file:///w/data/%d.parquet", i), iceberg.ParquetFile, partition, nil, nil, 100+i, 1000*i)
	check(err)
	file.ColumnSizes(map[int]int64{1: 10 * i, 2: 1 << 40}).ValueCounts(map[int]int64{1: i, 2: i})
	file.NullValueCounts(map[int]int64{2: 0}).NaNValueCounts(map[int]int64{})
	file.LowerBoundValues(map[int][]byte{1: number(-i), 2: []byte("a\xff")}).UpperBoundValues(map[int][]byte{1: number(i)})
	file.SplitOffsets([]int64{4, 1 << 33}).SortOrderID(0)
	id := snapshot
	status := []iceberg.ManifestEntryStatus{
		iceberg.EntryStatusADDED, iceberg.EntryStatusEXISTING, iceberg.EntryStatusDELETED}[i%3]
	if version == 1 {
		status = iceberg.EntryStatusADDED
	}
	sequence := i
	return iceberg.NewManifestEntry(status, &id, &sequence, &sequence, file.Build())
}

func main() {
	schema := iceberg.NewSchema(3,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "text", Type: iceberg.PrimitiveTypes.String})
	spec := iceberg.NewPartitionSpec(
		iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1001, Name: "text", Transform: iceberg.IdentityTransform{}})
	for version := 1; version <= 3; version++ {
		var files []iceberg.ManifestFile
		for part := int64(0); part < 2; part++ {
			var entries []iceberg.ManifestEntry
			for i := int64(1); i <= 300; i++ {
				entries = append(entries, entry(version, spec, i+part))
			}
			path := filepath.Join(os.Args[1], fmt.Sprintf("v%d-%d-m0.avro", version, part))
			var out bytes.Buffer
			file, err := iceberg.WriteManifest(path, &out, version, spec, schema, snapshot, entries)
			check(err)
			check(os.WriteFile(path, out.Bytes(), 0o644))
			files = append(files, file)
		}
		var out bytes.Buffer
		sequence, parent := int64(9), int64(8)
		check(iceberg.WriteManifestList(version, &out, snapshot, &parent, &sequence, 0, files))
		check(os.WriteFile(filepath.Join(os.Args[1], fmt.Sprintf("snap-v%d.avro", version)), out.Bytes(), 0o644))
	}
}

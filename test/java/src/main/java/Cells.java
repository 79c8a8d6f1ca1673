// SPDX-License-Identifier: Apache-2.0
//
// Parquet files read and written by parquet-java alone, as the format has them: no logical types but lists and
// maps. Takes lines from its standard input until that ends, words separated by tabs, and answers each with lines
// that end with an empty one, or with one line that begins with "!":
//   read FILE                                 a line of JSON a row; numbers as such, the bits of floats and all
//                                             bytes in hex, lists and the entries of maps as lists
//   copy FROM TO CODEC VERSION ENCODING       ENCODING: auto (dictionaries), plain or byte-stream-split
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.RecordReader;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;

public class Cells {
    interface Rows {
        void row(Group row) throws IOException;
    }

    static ParquetFileReader open(String path) throws IOException {
        return ParquetFileReader.open(new LocalInputFile(Path.of(path)),
                ParquetReadOptions.builder(new PlainParquetConfiguration()).usePageChecksumVerification(true).build());
    }

    static void each(ParquetFileReader file, Rows rows) throws IOException {
        MessageType schema = file.getFooter().getFileMetaData().getSchema();
        for (PageReadStore pages; (pages = file.readNextRowGroup()) != null;) {
            RecordReader<Group> reader =
                    new ColumnIOFactory().getColumnIO(schema).getRecordReader(pages, new GroupRecordConverter(schema));
            for (long i = 0; i < pages.getRowCount(); i++) {
                rows.row(reader.read());
            }
        }
    }

    static void leaf(StringBuilder out, Group group, int field, int index, Type type) {
        switch (type.asPrimitiveType().getPrimitiveTypeName()) {
            case BOOLEAN -> out.append(group.getBoolean(field, index));
            case INT32 -> out.append(group.getInteger(field, index));
            case INT64 -> out.append(group.getLong(field, index));
            case FLOAT -> out.append('"').append(String.format("%08x",
                    Float.floatToRawIntBits(group.getFloat(field, index)))).append('"');
            case DOUBLE -> out.append('"').append(String.format("%016x",
                    Double.doubleToRawLongBits(group.getDouble(field, index)))).append('"');
            case BINARY, FIXED_LEN_BYTE_ARRAY -> {
                out.append('"');
                for (byte b : group.getBinary(field, index).getBytes()) {
                    out.append(String.format("%02x", b));
                }
                out.append('"');
            }
            default -> throw new IllegalArgumentException(type.toString());
        }
    }

    /** The elements of a list or the entries of a map, each in a repeated group of its own. */
    static void repeated(StringBuilder out, Group list, boolean isMap) {
        GroupType entries = list.getType().getType(0).asGroupType();
        out.append('[');
        for (int i = 0; i < list.getFieldRepetitionCount(0); i++) {
            Group entry = list.getGroup(0, i);
            out.append(i == 0 ? "" : ",");
            if (isMap) {
                members(out, entry);
            } else {
                field(out, entry, 0, entries.getType(0));
            }
        }
        out.append(']');
    }

    static void field(StringBuilder out, Group group, int field, Type type) {
        if (group.getFieldRepetitionCount(field) == 0) {
            out.append("null");
        } else if (type.isPrimitive()) {
            leaf(out, group, field, 0, type);
        } else {
            LogicalTypeAnnotation meaning = type.getLogicalTypeAnnotation();
            boolean isMap = meaning instanceof LogicalTypeAnnotation.MapLogicalTypeAnnotation;
            if (isMap || meaning instanceof LogicalTypeAnnotation.ListLogicalTypeAnnotation) {
                repeated(out, group.getGroup(field, 0), isMap);
            } else {
                members(out, group.getGroup(field, 0));
            }
        }
    }

    static void members(StringBuilder out, Group group) {
        out.append('{');
        for (int i = 0; i < group.getType().getFieldCount(); i++) {
            out.append(i == 0 ? "\"" : ",\"").append(group.getType().getFieldName(i)).append("\":");
            field(out, group, i, group.getType().getType(i));
        }
        out.append('}');
    }

    static void read(StringBuilder out, String path) throws IOException {
        try (ParquetFileReader file = open(path)) {
            each(file, row -> {
                members(out, row);
                out.append('\n');
            });
        }
    }

    static void copy(String[] words) throws IOException {
        Map<String, CompressionCodecName> codecs = new HashMap<>(Map.of("none", CompressionCodecName.UNCOMPRESSED,
                "snappy", CompressionCodecName.SNAPPY, "gzip", CompressionCodecName.GZIP,
                "zstd", CompressionCodecName.ZSTD, "lz4", CompressionCodecName.LZ4_RAW));
        try (ParquetFileReader file = open(words[1])) {
            MessageType schema = file.getFooter().getFileMetaData().getSchema();
            ExampleParquetWriter.Builder builder = ExampleParquetWriter.builder(new LocalOutputFile(Path.of(words[2])))
                    .withConf(new PlainParquetConfiguration())
                    .withType(schema)
                    .withWriteMode(ParquetFileWriter.Mode.OVERWRITE)
                    .withCompressionCodec(codecs.get(words[3]))
                    .withWriterVersion(words[4].equals("2") ? WriterVersion.PARQUET_2_0 : WriterVersion.PARQUET_1_0)
                    .withDictionaryEncoding(words[5].equals("auto"))
                    .withPageRowCountLimit(17);
            for (ColumnDescriptor column : schema.getColumns()) {
                PrimitiveTypeName type = column.getPrimitiveType().getPrimitiveTypeName();
                if (words[5].equals("byte-stream-split") && type != PrimitiveTypeName.BINARY
                        && type != PrimitiveTypeName.BOOLEAN) {
                    builder.withByteStreamSplitEncoding(String.join(".", column.getPath()), true);
                }
            }
            try (ParquetWriter<Group> writer = builder.build()) {
                each(file, writer::write);
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split("\t");
            StringBuilder out = new StringBuilder();
            try {
                if (words[0].equals("read")) {
                    read(out, words[1]);
                } else {
                    copy(words);
                }
            } catch (Exception | Error error) {
                out.setLength(0);
                out.append("!").append(error.toString().replace('\n', ' ')).append('\n');
            }
            System.out.println(out);
            System.out.flush();
        }
    }
}

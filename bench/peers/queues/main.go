// SPDX-License-Identifier: Apache-2.0

// Peers of B5: etcd and NATS JetStream as they are, and a load for each. One request a goroutine is in
// flight; an acknowledgement counts when the server says that the value is on its disk.
//
//	queues etcd|nats DIR PORT
//	queues load etcd|nats PORT IN_FLIGHT BYTES SECONDS
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func serveEtcd(dir string, port int) {
	client := fmt.Sprintf("http://127.0.0.1:%d", port)
	peer := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	etcdmain.Main([]string{"etcd", "--name", "one", "--data-dir", dir, "--listen-client-urls", client,
		"--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "one=" + peer, "--quota-backend-bytes", "8589934592", "--log-level", "error",
		"--max-request-bytes", "4194304", "--snapshot-count", "1000000"})
}

func serveNats(dir string, port int) {
	options := &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true,
		SyncAlways: true, MaxPayload: 4 << 20}
	one, err := server.NewServer(options)
	check(err)
	go one.Start()
	one.WaitForShutdown()
}

// put stores one value and returns once it is durable.
type put func(value []byte, at int) error

func openEtcd(port int) func() put {
	return func() put {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{fmt.Sprintf("127.0.0.1:%d", port)},
			DialTimeout: 10 * time.Second})
		check(err)
		return func(value []byte, at int) error {
			_, err := client.Put(context.Background(), fmt.Sprintf("k%d", at), string(value))
			return err
		}
	}
}

func openNats(port int) func() put {
	connect := func() jetstream.JetStream {
		connection, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", port))
		check(err)
		stream, err := jetstream.New(connection)
		check(err)
		return stream
	}
	_, err := connect().CreateOrUpdateStream(context.Background(), jetstream.StreamConfig{Name: "rows",
		Subjects: []string{"rows.>"}, Storage: jetstream.FileStorage})
	check(err)
	return func() put {
		stream := connect()
		return func(value []byte, at int) error {
			_, err := stream.Publish(context.Background(), fmt.Sprintf("rows.%d", at), value)
			return err
		}
	}
}

// load keeps inFlight puts in flight, over at most 8 connections.
func load(open func() put, inFlight, bytes int, length time.Duration) {
	connections := make([]put, min(inFlight, 8))
	for i := range connections {
		connections[i] = open()
	}
	random := make([]byte, bytes)
	_, err := rand.Read(random)
	check(err)
	value := []byte(base64.RawStdEncoding.EncodeToString(random))[:bytes]
	times := make([][]float64, inFlight)
	var group sync.WaitGroup
	warm := time.Now().Add(length / 4)
	end := warm.Add(length)
	for i := range inFlight {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				began := time.Now()
				check(connections[i%len(connections)](value, i))
				if done := time.Now(); began.After(warm) && done.Before(end) {
					times[i] = append(times[i], float64(done.Sub(began).Microseconds()))
				}
			}
		}()
	}
	group.Wait()
	var all []float64
	for _, some := range times {
		all = append(all, some...)
	}
	sort.Float64s(all)
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"rows": len(all), "seconds": length.Seconds(),
		"rows_a_second": float64(len(all)) / length.Seconds(), "p50_us": all[len(all)/2],
		"p99_us": all[len(all)*99/100]}))
}

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 3 && arguments[0] == "etcd" {
		serveEtcd(arguments[1], number(arguments[2]))
	} else if len(arguments) == 3 && arguments[0] == "nats" {
		serveNats(arguments[1], number(arguments[2]))
	} else if len(arguments) == 6 && arguments[0] == "load" {
		seconds, err := time.ParseDuration(arguments[5] + "s")
		check(err)
		open := map[string]func(int) func() put{"etcd": openEtcd, "nats": openNats}[arguments[1]]
		load(open(number(arguments[2])), number(arguments[3]), number(arguments[4]), seconds)
	} else {
		fmt.Fprintln(os.Stderr, "usage: queues etcd|nats DIR PORT | load etcd|nats PORT IN_FLIGHT BYTES SECONDS")
		os.Exit(2)
	}
}

# SPDX-License-Identifier: Apache-2.0
"""Clients of a server that is killed."""
import random
import threading


class Senders:
    """Clients that never stop: two in three number their requests and send them again until answered."""

    def __init__(self, server, book, count, chance):
        self.server, self.book = server, book
        self.stop = threading.Event()
        self.failure = None
        self.threads = [threading.Thread(target=self._run, args=(i, random.Random(chance.random())))
                        for i in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, i, chance):
        try:
            self._send(i, chance)
        except BaseException as error:
            self.failure = error
            raise

    def _send(self, i, chance):
        producer, sequence = (f"p{i}", 0) if i % 3 else (None, None)
        while not self.stop.is_set():
            if producer:
                sequence += 1
            request = self.book.new("spans" if chance.random() < 0.3 else "logs",
                                    chance.randrange(1, 60), producer, sequence)
            while not self.book.send(self.server, request, timeout=5):
                if self.stop.wait(0.01):
                    return  # perhaps stored, perhaps not
                if not producer and request.attempts and chance.random() < 0.5:
                    break  # a client that gives up

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert self.failure is None, self.failure

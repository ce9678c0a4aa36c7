import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { openDiskStore } from '@svc/cas'
import { digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'

// Run by kill-sweep.ts under strace: ingests blobs in every way, and reports each on stdout once it is acknowledged.

const root = process.argv[2] as string
const acknowledge = (digest: string): void => void writeSync(1, `ack ${digest}\n`)

const store = await openDiskStore({ root, hashThreads: 1 })
acknowledge((await store.ingest(inChunks(seededBytes(5000, 1), 999))).digest)
acknowledge((await store.ingest(inChunks(seededBytes(300_000, 2), 99_999))).digest)

writeFileSync(`${root}.source`, seededBytes(70_000, 3))
const fd = openSync(`${root}.source`, 'r')
acknowledge((await store.ingest({ fd })).digest)
closeSync(fd)

const bytes = seededBytes(100_000, 4)
const key = { key: 'k', sizeBytes: bytes.length, digest: digestOf(bytes) }
const first = await store.partial(key)
await first.write(0, bytes.subarray(0, 50_000))
await first.checkpoint()
writeSync(1, 'checkpoint\n')
await first.write(50_000, bytes.subarray(50_000))
acknowledge((await first.commit()).digest)
await store.close()
writeSync(1, 'end\n')

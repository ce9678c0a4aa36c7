import { closeSync, openSync, writeSync } from 'node:fs'
import { openDiskStore } from '@svc/cas'
import { inChunks, seededBytes } from '@svc/cas-testsuite'

// Run by crash.faults.ts, which kills it: ingests blobs, eight at a time, and reports each once it is acknowledged.

const [root, seed, source] = process.argv.slice(2) as [string, string, string]
const store = await openDiskStore({ root })

let next = Number(seed)
async function lane(): Promise<void> {
  for (;;) {
    const n = next++
    if (n % 3 === 0) {
      const fd = openSync(source, 'r')
      try {
        writeSync(1, `ack ${(await store.ingest({ fd })).digest}\n`)
      } finally {
        closeSync(fd)
      }
    } else {
      const bytes = seededBytes(n % 3 === 1 ? 5000 : 400_000, n)
      writeSync(1, `ack ${(await store.ingest(inChunks(bytes, 60_000))).digest}\n`)
    }
  }
}
await Promise.all(Array.from({ length: 8 }, lane))

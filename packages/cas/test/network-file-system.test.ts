import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { expect, test } from 'vitest'
import { waited } from './network-file-system-port.ts'
import { temporaryFolder } from './temporary-root.ts'

const EXT4 = 0xef53
const NFS = 0x6969
const bytes = seededBytes(50_000)

/** The calls that blocked the event loop's thread while it looked at a blob on that file system. */
async function waitedOn(type: number): Promise<readonly string[]> {
  const folder = await temporaryFolder()
  const filePort = { module: new URL('./network-file-system-port.ts', import.meta.url).href, options: type }
  const store = await openDiskStore({ root: join(folder.path, 'store'), filePort })
  try {
    await store.ingest(inChunks(bytes, bytes.length))
    waited.length = 0
    await store.stat(digestOf(bytes))
    const blob = await store.open(digestOf(bytes))
    await blob.read(new Uint8Array(bytes.length), 0)
    await blob.close()
    return [...waited]
  } finally {
    await store.close()
    await folder.dispose()
  }
}

// A busy machine may make a read here slow, after which the next ones are made elsewhere for a while.
const somethingWaitedFor = (): Promise<void> => expect.poll(() => waitedOn(EXT4), { timeout: 60_000 }).not.toEqual([])

test.runIf(process.platform === 'linux')(
  'the event loop waits for a local disk, but not for a server',
  async () => {
    await somethingWaitedFor()
    expect(await waitedOn(NFS)).toEqual([])
    // what is held off while such a store is open ends with it
    await somethingWaitedFor()
  },
  150_000
)

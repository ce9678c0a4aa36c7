import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { type BlobStore, type DiskBlobStore, type DiskStoreOptions, openDiskStore } from '@svc/cas'
import { blockAttachment, blockHashes, codeOf, digestOf, seededBytes } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { heldSyncs } from './held-syncs.ts'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let root: string
const opened: BlobStore[] = []
async function open(options: Partial<DiskStoreOptions> = {}): Promise<DiskBlobStore> {
  const store = await openDiskStore({ root, ...options })
  opened.push(store)
  return store
}

beforeEach(async () => {
  folder = await temporaryFolder()
  root = join(folder.path, 'store')
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
  await folder.dispose()
})

describe('partial blobs', () => {
  const bytes = seededBytes(9_000_000)
  const key = { key: 'k', sizeBytes: bytes.length, digest: digestOf(bytes) }

  test('survive a restart, by a release or by the close of the store', async () => {
    let store = await open()
    const first = await store.partial(key)
    await first.write(0, bytes.subarray(0, 1_000_000))
    await first.release()
    await store.close()
    store = await open()
    const second = await store.partial(key)
    expect(second.ranges()).toEqual([[0, 1_000_000]])
    await second.write(5_000_000, bytes.subarray(5_000_000))
    await store.close()
    expect(await codeOf(second.checkpoint())).toBe('E_CLOSED')
    store = await open()
    const third = await store.partial(key, { attachments: [blockAttachment] })
    expect(third.ranges()).toEqual([
      [0, 1_000_000],
      [5_000_000, 9_000_000]
    ])
    await third.write(1_000_000, bytes.subarray(1_000_000, 5_000_000))
    const result = await third.commit()
    expect(result.digest).toBe(key.digest)
    expect(Buffer.compare(result.attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
    expect(fs.readdirSync(join(root, 'incoming'))).toEqual([])
  })

  test('include bytes that others write through the descriptor', async () => {
    const store = await open()
    const partial = await store.partial(key)
    for (let start = 0; start < bytes.length; start += 1 << 20) {
      const end = Math.min(bytes.length, start + (1 << 20))
      fs.writeSync(partial.fd as number, bytes, start, end - start, start)
      partial.markWritten(start, end)
    }
    expect((await partial.commit()).digest).toBe(key.digest)
  })

  test('are swept when their blob exists', async () => {
    let store = await open()
    const partial = await store.partial(key)
    await partial.write(0, bytes.subarray(0, 1_000_000))
    await partial.release()
    const other = await store.partial({ key: 'of another blob', sizeBytes: 10, digest: digestOf(seededBytes(10)) })
    await other.release()
    const left = fs.readdirSync(join(root, 'incoming'))
    expect(left.length).toBe(4)
    const again = await store.partial({ key: 'the same bytes', sizeBytes: bytes.length })
    await again.write(0, bytes)
    await again.commit()
    await store.close()
    store = await open()
    const swept = fs.readdirSync(join(root, 'incoming'))
    expect(swept.length).toBe(2)
    expect(left).toEqual(expect.arrayContaining(swept))
    expect((await store.partial(key)).ranges()).toEqual([])
  })

  test('are swept when no longer usable', async () => {
    let store = await open()
    for (const name of ['keep', 'old', 'broken', 'partless']) {
      const partial = await store.partial({ key: name, sizeBytes: 100 })
      await partial.write(0, new Uint8Array(10))
      await partial.release()
    }
    await store.close()
    const incoming = join(root, 'incoming')
    const journalOf = (name: string): string =>
      fs
        .readdirSync(incoming)
        .find(
          (file) => file.endsWith('.json') && fs.readFileSync(join(incoming, file), 'utf8').includes(`"${name}"`)
        ) as string
    fs.utimesSync(join(incoming, journalOf('old')), 1, 1)
    fs.unlinkSync(join(incoming, journalOf('partless').replace('.json', '.part')))
    fs.writeFileSync(
      join(incoming, journalOf('broken')),
      '{"version":1,"key":"broken","sizeBytes":100,"ranges":[[0,101]]}'
    )
    fs.writeFileSync(join(incoming, `${'0'.repeat(32)}.part`), 'x')
    fs.writeFileSync(join(incoming, `${'0'.repeat(32)}.json.0123456789abcdef.tmp`), 'x')
    store = await open()
    expect(fs.readdirSync(incoming).length).toBe(2)
    const kept = await store.partial({ key: 'keep', sizeBytes: 100 })
    expect(kept.ranges()).toEqual([[0, 10]])
    await kept.discard()
  })

  test('survive one start with a clock a year ahead; two such starts in a row sweep them', async () => {
    const put = async (): Promise<void> => {
      const store = await open()
      const partial = await store.partial(key)
      await partial.write(0, bytes.subarray(0, 1000))
      await partial.release()
      await store.close()
    }
    await put()
    const incoming = join(root, 'incoming')
    const [journal] = fs.readdirSync(incoming).filter((name) => name.endsWith('.json'))
    // as if that had been a year ago by the clock of the next start. The lock file tells when the store was last used.
    const then = new Date(fs.statSync(join(incoming, journal!)).mtimeMs - 365 * 24 * 3600 * 1000)
    for (const path of [join(incoming, journal!), join(root, 'lock')]) fs.utimesSync(path, then, then)
    await (await open()).close()
    expect(fs.readdirSync(incoming).length).toBe(2)
    await (await open()).close()
    expect(fs.readdirSync(incoming)).toEqual([])
  })

  test('are checkpointed by time, too: even a few bytes survive a kill', async () => {
    const store = await open({ checkpointMs: 20 })
    const partial = await store.partial(key)
    await partial.write(0, bytes.subarray(0, 1000))
    const journals = (): string[] => fs.readdirSync(join(root, 'incoming')).filter((name) => name.endsWith('.json'))
    await vi.waitFor(() => expect(journals().length).toBe(1), { timeout: 100_000 })
    const read = (): unknown => JSON.parse(fs.readFileSync(join(root, 'incoming', journals()[0]!), 'utf8')).ranges
    expect(read()).toEqual([[0, 1000]])
    await partial.write(5000, bytes.subarray(5000, 6000))
    await vi.waitFor(
      () =>
        expect(read()).toEqual([
          [0, 1000],
          [5000, 6000]
        ]),
      { timeout: 100_000 }
    )
    await partial.discard()
  })

  test('are checkpointed early: at 8 MiB and at each doubling', async () => {
    const all = seededBytes(34 << 20)
    const plan = new Faults({ only: '^fdatasync$' })
    const store = await open({ checkpointMs: 3_600_000, filePort: plan.filePort })
    plan.arm(0)
    const partial = await store.partial({ key: 'early', sizeBytes: all.length, digest: digestOf(all) })
    const journaled = (): number =>
      fs
        .readdirSync(join(root, 'incoming'))
        .filter((name) => name.endsWith('.json'))
        .flatMap(
          (name) => JSON.parse(fs.readFileSync(join(root, 'incoming', name), 'utf8')).ranges as [number, number][]
        )
        .reduce((sum, [start, end]) => sum + end - start, 0)
    for (let written = 0; written < all.length; written += 1 << 20) {
      await partial.write(written, all.subarray(written, written + (1 << 20)))
      const mebibytes = (written >> 20) + 1
      if ([8, 16, 32].includes(mebibytes))
        await vi.waitFor(() => expect(journaled()).toBe(mebibytes << 20), { timeout: 100_000 })
    }
    // few: no sync in between, and none for small files
    expect(plan.seen).toBe(3)
    await partial.discard()
  })

  test('together accept at most 128 MiB beyond their journals during a sync; then writers wait', async () => {
    const { filePort, hold, letGo } = heldSyncs()
    hold()
    const store = await open({ filePort })
    const step = new Uint8Array(1 << 20)
    const partials = await Promise.all(['a', 'b'].map((key) => store.partial({ key, sizeBytes: 100 * step.length })))
    let accepted = 0
    const lanes = partials.map(async (partial) => {
      for (let at = 0; at < partial.sizeBytes; at += step.length) {
        await partial.write(at, step)
        accepted += step.length
      }
    })
    const gate = partials[0]!.writeGate!
    await vi.waitFor(() => expect(Atomics.load(gate, 0)).toBe(1), { timeout: 100_000 })
    // those that use the descriptor are told as well
    const [from, to] = [partials[0]!.sizeBytes - step.length, partials[0]!.sizeBytes]
    const told = partials[0]!.markWritten(from, to)
    expect(told).toBeInstanceOf(Promise)
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(accepted).toBeLessThan(128 << 20)
    letGo()
    await Promise.all([...lanes, told])
    expect(accepted).toBe(200 << 20)
    await Promise.all(partials.map((partial) => partial.checkpoint()))
    expect(Atomics.load(gate, 0)).toBe(0)
    await Promise.all(partials.map((partial) => partial.discard()))
  })

  test('that end, or fail to sync, do not delay others', async () => {
    const { filePort, hold, letGo } = heldSyncs()
    hold()
    const store = await open({ filePort })
    const step = new Uint8Array(64 << 20)
    const [first, second] = await Promise.all(
      ['a', 'b'].map((key) => store.partial({ key, sizeBytes: 4 * step.length }))
    )
    await first!.write(0, step)
    const waits = first!.write(step.length, step)
    await vi.waitFor(() => expect(Atomics.load(first!.writeGate!, 0)).toBe(1), { timeout: 100_000 })
    letGo(Object.assign(new Error('no disk'), { code: 'EIO' }))
    await waits
    expect(await codeOf(first!.checkpoint())).toBe('E_IO')
    await second!.write(0, step)
    expect(Atomics.load(second!.writeGate!, 0)).toBe(0)
    await first!.discard()
    await second!.discard()
  })

  test('begin anew if their file is not a regular one, which is closed again', async () => {
    const store = await open()
    const first = await store.partial(key)
    await first.write(0, bytes.subarray(0, 1000))
    await first.release()
    const [part] = fs.readdirSync(join(root, 'incoming')).filter((name) => name.endsWith('.part'))
    fs.unlinkSync(join(root, 'incoming', part!))
    expect(spawnSync('mkfifo', [join(root, 'incoming', part!)]).status).toBe(0)
    const descriptors = await openDescriptors()
    const second = await store.partial(key)
    expect(second.ranges()).toEqual([])
    await second.discard()
    expect(await openDescriptors()).toBe(descriptors)
  })

  test('never claim more bytes than their file has', async () => {
    let store = await open()
    const first = await store.partial(key)
    await first.write(0, bytes.subarray(0, 1000))
    await first.release()
    await store.close()
    const [part] = fs.readdirSync(join(root, 'incoming')).filter((name) => name.endsWith('.part'))
    fs.truncateSync(join(root, 'incoming', part as string), 300)
    store = await open()
    const second = await store.partial(key)
    expect(second.ranges()).toEqual([[0, 300]])
    await second.discard()
  })
})

import { createCipheriv } from 'node:crypto'
import type { FakeHub } from '@svc/testkit/fake-hub'
import { type FakeXet, type FakeXetOptions, startFakeXet } from '@svc/testkit/fake-xet'
import { afterEach } from 'vitest'
import type { DeltaOutcome, Hub, HubFile, HubOptions, MemorySink, OlderVersion } from '../../src/index.ts'
import { createMemorySink, fakeHub, hubOf } from '../fixtures.ts'

export const MIB = 2 ** 20
/** What a chat template adds to a header. */
const INSERTED_BYTES = 9_024

const open: FakeXet[] = []

export function closeXetAfterTests(): void {
  afterEach(async () => {
    for (const xet of open.splice(0)) await xet.close()
  })
}

/** Bytes that cannot be compressed, the same for the same seed. */
export const weights = (sizeBytes: number, seed: number): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(sizeBytes))

/** A header that can, and weights. */
export const modelOf = (sizeBytes: number, seed = 1): Buffer =>
  Buffer.concat([Buffer.from('{"general.name": "a model"} '.repeat(4_000)), weights(sizeBytes, seed)])

/** Another header, 9,024 bytes longer. */
export const withInsertion = (model: Buffer): Buffer =>
  Buffer.concat([
    model.subarray(0, 50_000),
    Buffer.from('{% chat %}'.repeat(1_000)).subarray(0, INSERTED_BYTES),
    model.subarray(50_000)
  ])

export interface XetRig {
  readonly fake: FakeHub
  readonly xet: FakeXet
  readonly hub: Hub
  readonly file: HubFile
  readonly older: OlderVersion
  readonly sink: MemorySink
}

/** Two commits of one file, and the first one's bytes at hand. */
export async function xetRig(
  before: Buffer,
  now: Buffer,
  options: FakeXetOptions = {},
  hubOptions: HubOptions = {},
  others: readonly Buffer[] = []
): Promise<XetRig> {
  const xet = await startFakeXet(options)
  open.push(xet)
  for (const other of others) xet.put(other)
  const fake = await fakeHub({ xet, tokens: ['hf_t'] })
  const repo = { id: 'acme/model' }
  const [first, second] = [before, now].map((content) => fake.commit({ ...repo, files: [{ path: 'w.gguf', content }] }))
  // files of these tests are smaller than what is worth it elsewhere
  const hub = hubOf(fake, { limits: { smallFileBytes: 64 << 10 }, ...hubOptions })
  const at = async (commit: string): Promise<HubFile> => (await hub.listing(repo.id, commit)).files[0]!
  const older: OlderVersion = {
    file: await at(first!),
    read: async (target, offset) => before.copy(target, 0, offset, offset + target.length)
  }
  return { fake, xet, hub, file: await at(second!), older, sink: createMemorySink(now.length) }
}

/** Text that can be compressed, and never repeats a line. */
const textOf = (sizeBytes: number, name: string): Buffer =>
  Buffer.from(Array.from({ length: sizeBytes / 16 }, (_, i) => `${name}${i}`.padEnd(15, '.')).join('\n')).subarray(
    0,
    sizeBytes
  )

/** A file of which two parts are in a xorb that a third file made, with something else between them. */
export async function apartRig(options: FakeXetOptions): Promise<XetRig & { readonly now: Buffer }> {
  const before = weights(900_000, 1)
  const [head, tail] = [textOf(MIB, 'head'), textOf(MIB, 'tail')]
  const now = Buffer.concat([head, before, tail])
  const third = Buffer.concat([head, weights(300_000, 3), tail])
  return { ...(await xetRig(before, now, options, {}, [third])), now }
}

/** As an import does it. */
export async function fetchAll({ hub, file, older, sink }: XetRig): Promise<DeltaOutcome> {
  const outcome = await hub.reuse(file, async () => older, sink)
  await hub.download(file, sink)
  return outcome
}

/** Bytes of the file that the hub's own storage has sent. */
export const plainBytes = ({ fake, file }: XetRig): number => fake.bytesSent.get(file.path) ?? 0

import { readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { CasError, type DiskBlobStore, type NamedFileSource, openDiskStore } from '@svc/cas'
import { blockAttachment, blockHashes, codeOf, digestOf, seededBytes } from '@svc/cas-testsuite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let store: DiskBlobStore

beforeEach(async () => {
  folder = await temporaryFolder()
  store = await openDiskStore({ root: `${folder.path}/store`, hashThreads: 2 })
})
afterEach(async () => {
  await store.close()
  await folder.dispose()
})

function named(name: string, bytes: Uint8Array): NamedFileSource {
  const path = `${folder.path}/${name}`
  writeFileSync(path, bytes)
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return { path, identity: { dev, ino, size, mtimeNs, ctimeNs } }
}

/** Sizes with and without a last part of a block, and one that does not fit into one read. */
const bytesOf = (i: number): Uint8Array => seededBytes(i === 0 ? 0 : i === 1 ? 1_100_000 : 100 * i, i)

test('many small files are ingested together, with the same result as one by one', async () => {
  const contents = Array.from({ length: 150 }, (_, i) => bytesOf(i))
  const files = contents.map((bytes, i) => named(`f${i}`, bytes))
  const accepted: string[] = []
  await store.ingestNamed([files[9]!])
  const descriptors = await openDescriptors()
  const outcomes = await store.ingestNamed([...files, named('twin', contents[7]!)], {
    attachments: [blockAttachment],
    accept: ({ digest }) => void accepted.push(digest)
  })
  for (const [i, bytes] of [...contents, contents[7]!].entries()) {
    const outcome = outcomes[i]!
    if (outcome instanceof CasError) throw outcome
    expect([outcome.digest, outcome.sizeBytes]).toEqual([digestOf(bytes), bytes.length])
    expect(Buffer.compare(outcome.attachments.blocks!, blockHashes(bytes))).toBe(0)
    expect(statSync(store.blobPath(outcome.digest)).mode & 0o777).toBe(0o444)
  }
  const existed = outcomes.filter((outcome) => !(outcome instanceof CasError) && outcome.existed)
  expect(existed.length).toBe(2)
  expect(accepted.sort()).toEqual([...contents, contents[7]!].map(digestOf).sort())
  expect((await store.scrub()).mismatched).toEqual([])
  expect(readdirSync(`${store.root}/incoming`)).toEqual([])
  expect(await openDescriptors()).toBe(descriptors)
})

test('a file that changed since it was listed fails, and the others are ingested', async () => {
  const good = [named('a', bytesOf(5)), named('b', bytesOf(6))]
  const changed = named('changed', bytesOf(7))
  writeFileSync(changed.path, bytesOf(8).subarray(0, 700))
  const gone = named('gone', bytesOf(9))
  rmSync(gone.path)
  const linked = named('linked', bytesOf(10))
  symlinkSync(linked.path, `${folder.path}/link`)
  const link = { ...linked, path: `${folder.path}/link` }
  const { identity } = good[0]!
  const others = [
    { ...identity, ino: identity.ino + 1n },
    { ...identity, size: identity.size + 1n },
    { ...identity, mtimeNs: identity.mtimeNs - 1n },
    { ...identity, ctimeNs: identity.ctimeNs - 1n }
  ].map((other) => ({ ...good[0]!, identity: other }))
  const outcomes = await store.ingestNamed([good[0]!, changed, gone, link, ...others, good[1]!])
  expect(outcomes.map((outcome) => (outcome instanceof CasError ? outcome.code : outcome.digest))).toEqual([
    digestOf(bytesOf(5)),
    ...Array.from({ length: 7 }, () => 'E_IO'),
    digestOf(bytesOf(6))
  ])
  expect(readdirSync(`${store.root}/incoming`)).toEqual([])
})

test('an abort, a refusal and a file that is too large end the call and leave nothing behind', async () => {
  const files = Array.from({ length: 70 }, (_, i) => named(`f${i}`, bytesOf(i + 2)))
  expect(await codeOf(store.ingestNamed(files, { signal: AbortSignal.abort() }))).toBe('E_ABORTED')
  const stop = new AbortController()
  const cut = store.ingestNamed(files, { signal: stop.signal, accept: () => stop.abort() })
  expect(await codeOf(cut)).toBe('E_ABORTED')
  const refusal = new Error('not these')
  const refused = store.ingestNamed(files, {
    accept: () => {
      throw refusal
    }
  })
  await expect(refused).rejects.toBe(refusal)
  expect(await codeOf(store.ingestNamed([files[0]!, named('large', new Uint8Array(4 << 20))]))).toBe('E_RANGE')
  expect(readdirSync(`${store.root}/incoming`)).toEqual([])
})

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { localFiles, openLibrary } from '@svc/library'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

async function opened(root = temporaryFolder()) {
  const library = await openLibrary({ root })
  onTestFinished(() => library.close())
  return library
}

it('has one owner at a time: the other gets E_LOCKED, and the store when the first has closed', async () => {
  const root = temporaryFolder()
  const first = await opened(root)
  await expect(openLibrary({ root })).rejects.toMatchObject({ name: 'LibraryError', code: 'E_LOCKED' })
  await first.close()
  await (await opened(root)).close()
})

it('two that open at once: one wins', async () => {
  const root = temporaryFolder()
  const both = await Promise.allSettled([openLibrary({ root }), openLibrary({ root })])
  const won = both.filter(({ status }) => status === 'fulfilled')
  expect(won).toHaveLength(1)
  expect(both.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'E_LOCKED' } })
  await (won[0] as PromiseFulfilledResult<Awaited<ReturnType<typeof openLibrary>>>).value.close()
})

it('what it opened is not collected before it is closed', async () => {
  const library = await opened()
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000) })
  await library.import(localFiles([folder]), 'me/a')
  const { files } = await library.open('svc:///me/a:q8_0')
  const other = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, 5) })
  // the name is another model's now
  await library.import(localFiles([other]), 'me/a')
  const { blobs } = await library.collect({ graceMs: 0 })
  for (const { path } of files.filter(({ name }) => name !== undefined))
    expect(readFileSync(path).length).toBeGreaterThan(0)
  expect(blobs).toBeGreaterThanOrEqual(0)
  await library.close()
  const again = await opened(library.root)
  expect((await again.collect({ graceMs: 0 })).blobs).toBeGreaterThan(0)
  expect(readdirSync(join(library.root, 'state/artifacts')).length).toBeGreaterThan(0)
})

it('a closed library starts nothing', async () => {
  const library = await opened()
  await library.close()
  await expect(library.import(localFiles(['/']), 'me/a')).rejects.toMatchObject({ code: 'E_CLOSED' })
})

it('what a program is told names no command, and what the daemon tells names one', async () => {
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': 'GGUF, but for its first four bytes' })
  const withheld = 'me/a:q8_0 is withheld from others: no runtime can load "a-q8_0.gguf"'
  const { warnings } = await (await opened()).import(localFiles([folder]), 'me/a')
  expect(warnings).toContain(withheld)
  const job = await (await testDaemon()).import([folder], 'me/a')
  expect(job.result!.warnings).toContain(`${withheld}; svc private me/a:q8_0 --off shares it`)
})

it('manifests, indexes and records are those that a daemon writes', async () => {
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000), LICENSE: 'MIT License' })
  const library = await opened()
  const mine = await library.import(localFiles([folder]), 'me/a')
  await library.close()
  const daemon = await testDaemon()
  const job = await daemon.import([folder], 'me/a')
  expect(job.result!.manifests).toEqual(mine.manifests)
  const record = (root: string) => readFileSync(join(root, 'state/repos/me/a.json'), 'utf8')
  expect(record(library.root)).toBe(record(daemon.root))
  const artifacts = (root: string) =>
    readdirSync(join(root, 'state/artifacts'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => [
        entry.name,
        // but for the time of the import, and the checksum of that
        readFileSync(join(entry.parentPath, entry.name), 'utf8').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z|crc32:\w+/g, 'then')
      ])
  expect(artifacts(library.root)).toEqual(artifacts(daemon.root))
})

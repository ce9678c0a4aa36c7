import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { expect, onTestFinished, test } from 'vitest'
import { claimFolder, NOT_REGULAR, openRegular, openSized, writePartial } from '../src/index.ts'

function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-open-file-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('anything but a regular file is refused without waiting for it, links too', async () => {
  const folder = folderForTest()
  const [file, link, pipe] = ['file', 'link', 'pipe'].map((name) => join(folder, name)) as [string, string, string]
  writeFileSync(file, 'text')
  symlinkSync(file, link)
  execFileSync('mkfifo', [pipe])
  const codeOf = (path: string): Promise<string | undefined> => openRegular(path).then(() => 'opened', errnoOf)
  expect([await codeOf(folder), await codeOf(pipe), await codeOf(link)]).toEqual([NOT_REGULAR, NOT_REGULAR, 'ELOOP'])
  expect(await openSized(pipe, 0)).toBe(undefined)
  expect(await openSized(link, 5)).toBe(undefined)
  await using sized = await openSized(link, 4)
  await using followed = await openRegular(link, { follow: true })
  expect([await sized?.readFile('utf8'), await followed.readFile('utf8')]).toEqual(['text', 'text'])
})

test('a partial file is resumed, is its owner’s alone before it is written to, and goes if its bytes are wrong', async () => {
  const folder = folderForTest()
  const path = join(folder, 'partial')
  writeFileSync(path, 'some', { mode: 0o644 })
  const starts: number[] = []
  const sourceOf = (text: string, said = text) => ({
    sizeBytes: said.length,
    digest: `sha256:${createHash('sha256').update(said).digest('hex')}`,
    async *bytesFrom(start: number) {
      starts.push(start, statSync(path).mode & 0o777)
      yield Buffer.from(text.slice(start))
    }
  })
  expect(await writePartial(path, 0o600, sourceOf('some text'))).toBe(true)
  expect([readFileSync(path, 'utf8'), starts]).toEqual(['some text', [4, 0o600]])
  expect(await writePartial(path, 0o600, sourceOf('other', 'words'))).toBe(false)
  expect(readdirSync(folder)).toEqual([])
})

test('a folder has one holder at a time', async () => {
  const folder = folderForTest()
  const first = await claimFolder(folder)
  expect(await claimFolder(folder)).toBe(undefined)
  await first!.close()
  await using second = await claimFolder(folder)
  expect(second).not.toBe(undefined)
})

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@svc/internal-clock'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FolderListings } from '../../src/library/folder-listings.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-quiet-'))
  write('a')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (name: string): void => writeFileSync(join(folder, name), '')
const namesIn = async (path: string): Promise<string[]> => readdirSync(path).sort()
/** `laterMs`: how much later it is than the folder's last change, by the clock that is given. */
const foldersAt = (laterMs: number, maxCount = 100): FolderListings<string[]> =>
  new FolderListings(({ length }) => length, maxCount, { now: () => systemClock.now() + laterMs })

test('the names of a folder are cached until one is added, removed or renamed', async () => {
  const folders = foldersAt(60_000)
  expect(folders.now(folder)).toBeUndefined()
  const names = await folders.read(folder, namesIn)
  expect(names).toEqual(['a'])
  expect(folders.now(folder)).toBe(names)
  write('b')
  expect(folders.now(folder)).toBeUndefined()
  expect(await folders.read(folder, namesIn)).toEqual(['a', 'b'])
  rmSync(join(folder, 'a'))
  expect(folders.now(folder)).toBeUndefined()
})

test('a listing of a folder that was just written to, or changes while it is read, is not cached', async () => {
  const recent = foldersAt(-60_000)
  await recent.read(folder, namesIn)
  expect(recent.now(folder)).toBeUndefined()
  const folders = foldersAt(60_000)
  const changing = async (path: string): Promise<string[]> => {
    const names = await namesIn(path)
    write('meanwhile')
    return names
  }
  expect(await folders.read(folder, changing)).toEqual(['a'])
  expect(folders.now(folder)).toBeUndefined()
})

test('a removed folder is reported as missing, and an unreadable one is not cached', async () => {
  const folders = foldersAt(60_000)
  await folders.read(folder, namesIn)
  rmSync(folder, { recursive: true })
  expect(folders.now(folder)).toBeUndefined()
  await expect(folders.read(folder, namesIn)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(folders.now(folder)).toBeUndefined()
})

test('the cache of names is bounded', async () => {
  write('b')
  const folders = foldersAt(60_000, 1)
  expect(await folders.read(folder, namesIn)).toEqual(['a', 'b'])
  expect(folders.now(folder)).toBeUndefined()
})

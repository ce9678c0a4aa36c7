import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { digestFromHex } from '@svc/ref'
import { createView, type ViewErrorCode } from '@svc/view'
import { type Header, pack } from 'tar-stream'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'

type Member = Partial<Header> & { readonly name: string; readonly content?: string }

/** A tar as the field's usual writer makes it; not all of it is what artifacts are sealed with. */
async function tarOf(members: readonly Member[]): Promise<Buffer> {
  const writer = pack()
  for (const { content = '', ...header } of members) writer.entry(header, content)
  writer.finalize()
  return Buffer.from(await buffer(writer))
}

/** What becomes of a view whose tokenizer is this tar: its files, or the error's code. */
async function unpacked(tar: Uint8Array): Promise<Record<string, string> | ViewErrorCode> {
  const folder = temporaryFolder()
  const digest = digestFromHex(createHash('sha256').update(tar).digest('hex'))
  writeFileSync(join(folder, 'tar'), tar)
  const files = [{ name: 'tokenizer.tar', kind: 'tokenizer' as const, digest, size: tar.length }]
  const source = { manifest: { files, annotations: {} }, manifestDigest: digest, blobPath: () => join(folder, 'tar') }
  try {
    const view = await createView(source, { path: join(folder, 'view') })
    return Object.fromEntries(view.files.map(({ name, path }) => [name, readFileSync(path, 'utf8')]))
  } catch (error) {
    expect(readdirSync(folder)).toEqual(['tar'])
    return (error as { code: ViewErrorCode }).code
  }
}

test('plain files are unpacked, whichever tool wrote the tar', async () => {
  const long = `${'folder/'.repeat(20)}name.json`
  expect(
    await unpacked(
      await tarOf([{ name: 'a.json', content: '{}' }, { name: long, content: 'x'.repeat(1_000) }, { name: 'empty' }])
    )
  ).toEqual({
    'a.json': '{}',
    [long]: 'x'.repeat(1_000),
    empty: ''
  })
})

describe('a tar that is refused whole', () => {
  const link = (type: 'symlink' | 'link', linkname: string): Member => ({ name: 'x', type, linkname })
  const cases: readonly (readonly [string, ViewErrorCode, readonly Member[]])[] = [
    ['a symbolic link', 'E_BAD_TAR', [link('symlink', '/etc/passwd')]],
    ['a hard link', 'E_BAD_TAR', [link('link', '/etc/passwd')]],
    ['a device', 'E_BAD_TAR', [{ name: 'x', type: 'character-device' }]],
    ['a FIFO', 'E_BAD_TAR', [{ name: 'x', type: 'fifo' }]],
    ['a folder', 'E_BAD_TAR', [{ name: 'x', type: 'directory' }]],
    ['extension headers', 'E_BAD_TAR', [{ name: 'x', pax: { path: '../../x' } }]],
    ['a name outside', 'E_BAD_NAME', [{ name: 'a', content: 'a' }, { name: '../x' }]],
    ['an absolute name', 'E_BAD_NAME', [{ name: '/x' }]],
    ['a name twice', 'E_BAD_NAME', [{ name: 'x' }, { name: 'x' }]],
    ['a file that is a folder', 'E_BAD_NAME', [{ name: 'x' }, { name: 'x/y' }]],
    ['the name of the marker', 'E_BAD_NAME', [{ name: '.svc-view.json' }]],
    ['too many members', 'E_BAD_TAR', Array.from({ length: 1_025 }, (_, i) => ({ name: `f${i}` }))]
  ]
  test.each(cases)('%s: %s', async (_, code, members) => {
    expect(await unpacked(await tarOf(members))).toBe(code)
  })

  test.each([
    ['cut in a member', (tar: Buffer) => tar.subarray(0, 700)],
    ['cut in a header', (tar: Buffer) => tar.subarray(0, 100)],
    ['without its end', (tar: Buffer) => tar.subarray(0, 1_024)],
    ['with more behind its end', (tar: Buffer) => Buffer.concat([tar, tar])],
    ['with a damaged header', (tar: Buffer) => Buffer.from(tar).fill(0xff, 148, 156)],
    ['with a size that is not an octal number', (tar: Buffer) => Buffer.from(tar).fill('9', 124, 135)],
    ['empty', () => Buffer.alloc(0)],
    ['no tar', () => Buffer.from('x'.repeat(2_000))]
  ])('%s', async (_, damage) => {
    expect(await unpacked(damage(await tarOf([{ name: 'a.json', content: 'x'.repeat(500) }])))).toBe('E_BAD_TAR')
  })
})

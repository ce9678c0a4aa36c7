import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { compareText } from '@svc/ref'
import fc from 'fast-check'
import { extract } from 'tar-stream'
import { afterAll, describe, expect, test } from 'vitest'
import { ClassifyError, planTar, type TarSource, writeTar } from '../src/index.ts'
import { readVectors } from './vectors.ts'

type Tree = ReadonlyMap<string, Uint8Array>

const room = mkdtempSync(join(tmpdir(), 'svc-tar-'))
afterAll(() => rmSync(room, { recursive: true }))
let trees = 0

const hasGnuTar = ((): boolean => {
  try {
    return execFileSync('tar', ['--version'], { encoding: 'utf8' }).includes('GNU tar')
  } catch {
    return false
  }
})()
const mustHaveGnuTar = process.env.SVC_REQUIRE_INTEROP === '1'

/** What GNU tar makes of a tree, or undefined when it refuses a member. */
function gnuTar(tree: Tree): Buffer | undefined {
  const folder = join(room, String(trees++))
  mkdirSync(folder)
  for (const [name, bytes] of tree) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), bytes)
  }
  try {
    const names = [...tree.keys()].sort(compareText)
    const options = [
      '--format=ustar',
      '--mtime=@0',
      '--owner=:0',
      '--group=:0',
      '--numeric-owner',
      '--mode=0644',
      '-b1',
      '--no-recursion',
      '--verbatim-files-from',
      '--null',
      '-T',
      '-',
      '-cf',
      '-'
    ]
    return execFileSync('tar', options, {
      cwd: folder,
      env: { ...process.env, LC_ALL: 'C' },
      input: `${names.join('\0')}\0`,
      stdio: ['pipe', 'pipe', 'ignore'],
      maxBuffer: 1 << 28
    })
  } catch (error) {
    if ((error as { status?: number }).status === 2) return undefined
    throw error
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const sources = (tree: Tree, cut = 1 << 20): TarSource[] =>
  [...tree].map(([name, bytes]) => ({
    name,
    sizeBytes: bytes.length,
    *open() {
      for (let at = 0; at < bytes.length; at += cut) yield bytes.subarray(at, at + cut)
    }
  }))

async function ourTar(tree: Tree, cut?: number): Promise<Buffer | undefined> {
  try {
    return Buffer.concat(await collect(writeTar(sources(tree, cut))))
  } catch (error) {
    if (error instanceof ClassifyError && error.code === 'E_TAR_LIMIT') return undefined
    throw error
  }
}

const letter = fc.constantFrom('a', 'b', 'Z', '0', '_', '.x', ' ', 'é', '日', '😀', '-')
/** Segments up to 255 bytes, of which long ones are likely. */
const segment = fc
  .tuple(
    fc.array(letter, { minLength: 1, maxLength: 12 }).map((letters) => `n${letters.join('')}`),
    fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 254 }))
  )
  .map(([start, fill]) => start.padEnd(Math.min(fill, 255 - (Buffer.byteLength(start) - start.length)), 'f'))
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'))
const content = fc
  .oneof(fc.constantFrom(0, 1, 511, 512, 513, 1024), fc.integer({ min: 0, max: 3000 }))
  .chain((size) => fc.integer({ min: 0, max: 255 }).map((byte) => new Uint8Array(size).fill(byte)))
/** No name is a folder of another. */
const tree = fc
  .uniqueArray(fc.tuple(path, content), { minLength: 1, maxLength: 6, selector: ([name]) => name })
  .map((files): Tree => {
    const names = files.map(([name]) => name)
    return new Map(files.filter(([name]) => !names.some((other) => other.startsWith(`${name}/`))))
  })

describe.skipIf(!hasGnuTar && !mustHaveGnuTar)('against GNU tar', () => {
  test('the same bytes for any tree, and refused where GNU tar refuses', async () => {
    await fc.assert(
      fc.asyncProperty(tree, fc.integer({ min: 1, max: 700 }), async (files, cut) => {
        const [ours, theirs] = [await ourTar(files, cut), gnuTar(files)]
        expect(ours === undefined).toBe(theirs === undefined)
        if (ours && theirs) expect(ours.equals(theirs)).toBe(true)
      }),
      { numRuns: 60 }
    )
  })

  test('names of every length from 1 to 255 bytes, flat and in folders', async () => {
    for (const make of [
      (n: number) => 'x'.repeat(n),
      (n: number) => `${'d'.repeat(Math.ceil(n / 2))}/${'x'.repeat(Math.floor(n / 2))}`
    ]) {
      const names = Array.from({ length: 255 }, (_, i) => make(i + 1)).filter(
        (name) => !name.endsWith('/') && !name.startsWith('/')
      )
      const fitting = new Map(names.filter((name) => fits(name)).map((name) => [name, new Uint8Array(3)]))
      expect(fitting.size).toBeGreaterThanOrEqual(100)
      expect((await ourTar(fitting))!.equals(gnuTar(fitting)!)).toBe(true)
      const refused = names.filter((name) => !fits(name))
      for (const name of [refused[0]!, refused.at(-1)!])
        expect(gnuTar(new Map([[name, new Uint8Array(0)]]))).toBeUndefined()
    }
  })

  test('the split at the last possible slash', async () => {
    for (const name of [
      `${'a'.repeat(155)}/${'b'.repeat(100)}`,
      `${'a'.repeat(154)}/b/${'c'.repeat(98)}`,
      `${'a'.repeat(50)}/${'b'.repeat(104)}/${'c'.repeat(60)}`,
      `${'a/'.repeat(60)}b`,
      `${'é'.repeat(77)}/${'日'.repeat(33)}`
    ]) {
      const files = new Map([[name, new TextEncoder().encode(name)]])
      expect((await ourTar(files))!.equals(gnuTar(files)!)).toBe(true)
    }
  })
})

test('tar-stream reads back what was written', async () => {
  await fc.assert(
    fc.asyncProperty(tree, async (files) => {
      const ours = await ourTar(files)
      if (!ours) return
      const read: [string, string][] = []
      for await (const entry of Readable.from([ours]).pipe(extract())) {
        const bytes = Buffer.concat(await collect(entry as AsyncIterable<Uint8Array>))
        expect(entry.header).toMatchObject({
          type: 'file',
          mode: 0o644,
          uid: 0,
          gid: 0,
          uname: '',
          gname: '',
          mtime: new Date(0),
          size: bytes.length
        })
        read.push([entry.header.name, bytes.toString('hex')])
      }
      expect(read).toEqual(
        [...files]
          .sort(([a], [b]) => compareText(a, b))
          .map(([name, bytes]) => [name, Buffer.from(bytes).toString('hex')])
      )
    }),
    { numRuns: 30 }
  )
})

test('the planned size and offsets are those of the stream', async () => {
  await fc.assert(
    fc.asyncProperty(tree, async (files) => {
      const ours = await ourTar(files)
      if (!ours) return
      const plan = planTar(sources(files))
      expect(plan.sizeBytes).toBe(ours.length)
      for (const { file, header, headerOffset, dataOffset } of plan.members) {
        expect(ours.subarray(headerOffset, headerOffset + 512).equals(header)).toBe(true)
        expect(ours.subarray(dataOffset, dataOffset + file.sizeBytes).equals(files.get(file.name)!)).toBe(true)
      }
    })
  )
})

test('the order of the members does not matter', async () => {
  const files: Tree = new Map([
    ['b', new Uint8Array(3)],
    ['a/c', new Uint8Array(600)],
    ['a.b', new Uint8Array(0)]
  ])
  const reversed = new Map([...files].reverse())
  expect((await ourTar(files))!.equals((await ourTar(reversed))!)).toBe(true)
})

test.each(
  readVectors<{ cases: { members: { name: string; text: string }[]; sizeBytes: number; sha256: string }[] }>('tar')
    .cases
)('vector $sha256', async ({ members, sizeBytes, sha256 }) => {
  const bytes = (await ourTar(new Map(members.map(({ name, text }) => [name, new TextEncoder().encode(text)]))))!
  expect(bytes.length).toBe(sizeBytes)
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256)
})

describe('refusals', () => {
  test.each([
    ['x'.repeat(101), 0, 'E_TAR_LIMIT'],
    [`${'a'.repeat(156)}/b`, 0, 'E_TAR_LIMIT'],
    [`a/${'b'.repeat(101)}`, 0, 'E_TAR_LIMIT'],
    ['x', 2 ** 33, 'E_TAR_LIMIT'],
    ['x', -1, 'E_TAR_LIMIT'],
    ['x', 0.5, 'E_TAR_LIMIT'],
    ['../x', 0, 'E_BAD_NAME'],
    ['/x', 0, 'E_BAD_NAME'],
    ['x/', 0, 'E_BAD_NAME'],
    ['', 0, 'E_BAD_NAME']
  ])('%s of %d bytes', (name, sizeBytes, code) => {
    expect(() => planTar([{ name, sizeBytes }])).toThrow(
      expect.objectContaining({ code, details: expect.objectContaining({ name }) })
    )
  })

  test('8 GiB less one byte is the largest member', () => {
    expect(planTar([{ name: 'x', sizeBytes: 2 ** 33 - 1 }]).sizeBytes).toBe(512 + 2 ** 33 + 1024)
  })

  test('the same member twice', () => {
    expect(() =>
      planTar([
        { name: 'x', sizeBytes: 1 },
        { name: 'x', sizeBytes: 2 }
      ])
    ).toThrow(expect.objectContaining({ code: 'E_BAD_NAME' }))
  })

  test.each([[3], [5]])('a member of 4 bytes that has %d', async (length) => {
    const lying: TarSource = { name: 'x', sizeBytes: 4, open: () => [new Uint8Array(length)] }
    await expect(collect(writeTar([lying]))).rejects.toMatchObject({ code: 'E_TAR_CONTENT', details: { name: 'x' } })
  })

  test('an error of a member is passed on, and the member is closed', async () => {
    let closed = false
    const broken = new Error('EIO')
    const failing: TarSource = {
      name: 'x',
      sizeBytes: 4,
      async *open() {
        try {
          yield new Uint8Array(1)
          throw broken
        } finally {
          closed = true
        }
      }
    }
    await expect(collect(writeTar([failing]))).rejects.toBe(broken)
    expect(closed).toBe(true)
  })
})

function fits(name: string): boolean {
  try {
    planTar([{ name, sizeBytes: 3 }])
    return true
  } catch {
    return false
  }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return all
}

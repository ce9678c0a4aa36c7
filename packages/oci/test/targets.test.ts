// Places to write to that hold something, or that two calls want at once.
import { spawnSync } from 'node:child_process'
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { writeArchive } from '../src/archive.ts'
import { digestOf } from '../src/document.ts'
import { writeLayout } from '../src/layout.ts'
import { openLayout } from '../src/open-layout.ts'
import { type PackedImage, packArtifact } from '../src/pack.ts'
import { chooseManifest } from '../src/unpack.ts'

const hasFlock = spawnSync('flock', ['--version']).error === undefined
const fails = (code: string) => expect.objectContaining({ name: 'OciError', code })
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

function pack(ref: string, sizeBytes = 1_000): PackedImage {
  const bytes = Buffer.alloc(sizeBytes, ref)
  const path = join(folder, `${ref.replaceAll(/\W/g, '-')}-${sizeBytes}.gguf`)
  writeFileSync(path, bytes)
  const digest = digestOf(bytes)
  const file = { name: 'a.gguf', kind: 'weights.gguf', sizeBytes, digest, path }
  return packArtifact({ files: [file], annotations: {}, manifestDigest: digest, ref })
}
const digestsIn = async (path: string): Promise<string[]> =>
  (await openLayout(path)).index.manifests.map(({ digest }) => digest)

describe('writeArchive', () => {
  it.skipIf(!hasFlock)('of two simultaneous calls, one writes', async () => {
    const path = join(folder, 'x.tar')
    const images = [pack('a/one:q8_0', 3 << 20), pack('a/two:q8_0', 1 << 20)]
    const ended = await Promise.allSettled(images.map((image) => writeArchive(path, [image])))
    const written = images.filter((_, i) => ended[i]?.status === 'fulfilled')
    expect(written).toHaveLength(1)
    expect(ended).toContainEqual({ status: 'rejected', reason: fails('E_BAD_TARGET') })
    expect(await digestsIn(path)).toEqual([written[0]?.manifest.digest])
  })

  it('finds a dangling link before anything is written', async () => {
    const path = join(folder, 'x.tar')
    symlinkSync(join(folder, 'absent'), path)
    await expect(writeArchive(path, [pack('a/b:q8_0')])).rejects.toEqual(fails('E_BAD_TARGET'))
    expect(readdirSync(folder)).not.toContain('x.tar.partial')
  })

  it('does not wait for a pipe', async () => {
    const path = join(folder, 'x.tar')
    spawnSync('mkfifo', [`${path}.partial`])
    await expect(writeArchive(path, [pack('a/b:q8_0')])).rejects.toEqual(fails('E_BAD_TARGET'))
  })

  it("keeps an archive whose writer died before it removed the partial's name", async () => {
    const [path, moved] = [join(folder, 'x.tar'), join(folder, 'moved.tar')]
    await writeArchive(moved, [pack('a/one:q8_0')])
    const bytes = readFileSync(moved)
    linkSync(moved, `${path}.partial`)
    const two = pack('a/two:q8_0')
    await writeArchive(path, [two])
    expect(readFileSync(moved).equals(bytes)).toBe(true)
    expect(await digestsIn(path)).toEqual([two.manifest.digest])
  })
})

describe('writeLayout', () => {
  it('keeps two models of one quant apart, and replaces the same model', async () => {
    const path = join(folder, 'layout')
    const [one, two, again] = [pack('a/one:q8_0'), pack('a/two:q8_0'), pack('a/two:q8_0', 2_000)]
    for (const image of [one, two, again]) await writeLayout(path, [image])
    const { index } = await openLayout(path)
    expect(chooseManifest(index, 'q8_0').digest).toBe(one.manifest.digest)
    expect(chooseManifest(index, 'a/two:q8_0').digest).toBe(again.manifest.digest)
    expect(index.manifests).toHaveLength(2)
  })

  it.skipIf(!hasFlock)('loses no model when two calls write simultaneously', async () => {
    const path = join(folder, 'layout')
    const images = [pack('a/one:q8_0'), pack('a/two:q4_0')]
    const ended = await Promise.allSettled(images.map((image) => writeLayout(path, [image])))
    const written = images.filter((_, i) => ended[i]?.status === 'fulfilled')
    expect(await digestsIn(path)).toEqual(written.map(({ manifest }) => manifest.digest))
  })

  it("keeps others' index entries, and accepts a folder whose first file was cut short", async () => {
    const path = join(folder, 'layout')
    mkdirSync(path)
    writeFileSync(join(path, 'oci-layout.partial'), '{')
    await writeLayout(path, [pack('a/one:q8_0')])
    const file = join(path, 'index.json')
    const index = JSON.parse(readFileSync(file, 'utf8'))
    index.annotations = { mine: 'kept' }
    index.manifests[0].platform = { os: 'linux', architecture: 'arm64' }
    writeFileSync(file, JSON.stringify(index))
    await writeLayout(path, [pack('a/two:q8_0')])
    const { annotations, manifests } = JSON.parse(readFileSync(file, 'utf8'))
    expect({ annotations, first: manifests[0], count: manifests.length }).toEqual({
      annotations: index.annotations,
      first: index.manifests[0],
      count: 2
    })
  })
})

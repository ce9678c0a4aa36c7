import { digestFromHex } from '@svc/ref'
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../src/canonical.ts'
import { parseManifest, parseStoredManifest, sealManifest } from '../src/manifest.ts'
import { type FolderSource, modelFiles } from '../src/model-files.ts'
import type { FileKind, ManifestFile } from '../src/types.ts'
import { errorOf } from './manifest-error.ts'
import { vectors } from './vectors.ts'

const digestOf = (byte: number) => digestFromHex(byte.toString(16).padStart(2, '0').repeat(32))

function kindOf(name: string): FileKind {
  if (name === 'modelconfig.json') return 'config'
  if (name === 'tokenizer.tar') return 'tokenizer'
  if (name.endsWith('adapter.tar')) return 'adapter'
  if (name.endsWith('.safetensors')) return 'weights.safetensors'
  if (name.startsWith('chat_template')) return 'chat-template'
  return name.endsWith('.py') ? 'code' : 'weights.gguf'
}

const entryOf = (name: string, i: number): ManifestFile => ({
  name,
  kind: kindOf(name),
  digest: digestOf(i + 1),
  size: i + 1,
  bt: { merkleRoot: digestOf(i + 101) },
  ...(name.endsWith('.py') && { role: 'model' })
})

const licencesOf = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [`svc.license.file.${name}`, `text of ${name}`]))

test.each(vectors.folders)('a folder: $name', ({ entries, members, upstreamConfig, licences, companions, folder }) => {
  const source: FolderSource = {
    manifest: { files: entries.map(entryOf), annotations: { 'svc.license': 'MIT', ...licencesOf(licences) } },
    ...(upstreamConfig && { upstreamConfig: '{"a":"ü"}' }),
    companions: companions.map((path, i) => ({ path, size: i, digest: digestOf(i + 201) }))
  }
  const files = modelFiles(source, ({ name }) => (members[name] ?? []).map((each) => ({ name: each, sizeBytes: 7 })))
  expect(files.map(({ kind, name }) => [kind, name])).toEqual(folder)
  for (const { name, kind, sizeBytes, content } of files) {
    if (content.in === 'document')
      expect([sizeBytes, content.text]).toEqual(
        kind === 'config' ? [10, '{"a":"ü"}'] : [`text of ${name}`.length, `text of ${name}`]
      )
    if (content.in === 'tar') expect([sizeBytes, content.tar.kind]).toEqual([7, kind])
    if (content.in === 'blob') expect(content.isCompanion).toBe(kind === 'companion' || kind === 'config')
  }
})

test.each([
  [['tokenizer.json', 'tokenizer.json'], 'tokenizer.json'],
  [['x.gguf'], 'x.gguf'],
  [['x.gguf/y'], 'x.gguf/y'],
  [['config.json'], 'config.json'],
  [['../x'], '../x'],
  [['.git/config'], '.git/config'],
  [['.svc-view.json'], '.svc-view.json']
])('members %j of a tokenizer, of which one cannot have its name, are refused', (members, name) => {
  const files = ['modelconfig.json', 'x.gguf', 'tokenizer.tar'].map(entryOf)
  const list = (): unknown =>
    modelFiles({ manifest: { files, annotations: {} }, upstreamConfig: '{}' }, () =>
      members.map((each) => ({ name: each, sizeBytes: 1 }))
    )
  expect(list).toThrow(expect.objectContaining({ reason: 'path', details: expect.objectContaining({ name }) }))
})

describe.each(vectors.licenceNames)('a licence named $name', ({ name, reason }) => {
  const files = ['modelconfig.json', 'x-q4_0.gguf'].map(entryOf)
  const annotations = licencesOf([name])
  const bytes = canonicalBytes({ schemaVersion: 1, artifactType: 'model', files, annotations })

  test(reason === null ? 'is sealed and read' : `is refused: ${reason}`, () => {
    if (reason === null) expect(parseManifest(sealManifest(files, annotations).bytes)).toEqual(parseManifest(bytes))
    else {
      expect(errorOf(() => sealManifest(files, annotations))).toBe(`E_INVALID ${reason}`)
      expect(errorOf(() => parseManifest(bytes))).toBe(`E_CORRUPTION ${reason}`)
    }
  })

  test('does not hide the other files of a stored manifest', () => {
    const stored = modelFiles({ manifest: parseStoredManifest(bytes) }, () => [])
    expect(stored[0]).toMatchObject({ name: 'x-q4_0.gguf', kind: 'weights.gguf' })
    if (reason !== null) expect(stored).toHaveLength(1)
  })
})

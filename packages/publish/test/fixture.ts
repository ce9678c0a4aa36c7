import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FileKind, type ManifestFile, sealManifest } from '@svc/manifest'
import { leafLayer, piecesRoot, toHex } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { seededBytes } from '@svc/testkit/models'
import { expect, onTestFinished } from 'vitest'
import { type Publication, type PublicationInput, type PublishError, publicationOf } from '../src/index.ts'

const digestOf = (bytes: Uint8Array): Sha256Digest =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}` as Sha256Digest

/** The error of a call that must fail. */
export const failure = (work: Promise<unknown>): Promise<PublishError> =>
  work.then(
    () => expect.fail('it was accepted'),
    (error: unknown) => error as PublishError
  )

export function temporaryFolder(cleanUp: (work: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-publish-'))
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A model on disk, and what it takes to publish it. */
export interface TestModel {
  readonly input: PublicationInput
  /** By path in the torrent. */
  readonly files: ReadonlyMap<string, Buffer>
  publication(more?: Partial<PublicationInput>): Promise<Publication>
}

/** A model of some pieces and small files, with names that URLs and keys must encode. */
export function makeModel(folder: string, { seed = 1, sizeBytes = 2_500_000, ref = 'me/model:q8_0' } = {}): TestModel {
  const contents: readonly (readonly [string, FileKind, Buffer])[] = [
    ['modelconfig.json', 'config', Buffer.from('{}')],
    ['model-q8_0.gguf', 'weights.gguf', seededBytes(sizeBytes, seed)],
    ["größe a+b%20c#d?e&f=g;(h)'i!*/adapter.tar", 'adapter', seededBytes(70_000, seed + 1)],
    ['chat_template.jinja', 'chat-template', Buffer.from('{{ messages }}')],
    ['empty.py', 'code', Buffer.alloc(0)]
  ]
  mkdirSync(folder, { recursive: true })
  const files = new Map<string, Buffer>()
  const pathOf = (digest: Sha256Digest): string => join(folder, digest.slice('sha256:'.length))
  const listed = contents.map(([name, kind, bytes]): ManifestFile => {
    const digest = digestOf(bytes)
    writeFileSync(pathOf(digest), bytes)
    files.set(name, bytes)
    const root = bytes.length > 0 && piecesRoot(leafLayer(bytes), bytes.length)
    return {
      name,
      kind,
      digest,
      size: bytes.length,
      ...(kind === 'code' && { role: 'model' }),
      ...(root !== false && { bt: { merkleRoot: `sha256:${toHex(root)}` as Sha256Digest } })
    }
  })
  const { bytes: manifest, digest: manifestDigest } = sealManifest(listed)
  const input = { manifest, manifestDigest, ref, pathOf }
  files.set(`manifest/sha256-${manifestDigest.slice('sha256:'.length)}`, Buffer.from(manifest))
  return { input, files, publication: (more = {}) => publicationOf({ ...input, ...more }) }
}

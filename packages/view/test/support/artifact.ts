import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { writeTar } from '@svc/classify'
import type { FileKind, ManifestFile } from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import type { ViewSource } from '@svc/view'
import { onTestFinished } from 'vitest'

/** A folder of its own for one test, in `base`; its path has no links in it. */
export function temporaryFolder(base = tmpdir()): string {
  const path = realpathSync(mkdtempSync(join(base, 'svc-view-test-')))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export interface FileOfTest {
  readonly name: string
  readonly kind: FileKind
  /** The blob, or the members of the tar that is the blob. */
  readonly content: Uint8Array | string | Readonly<Record<string, Uint8Array | string>>
  readonly part?: number
  readonly role?: string
}

export interface Artifact extends ViewSource {
  readonly root: string
  readonly files: readonly ManifestFile[]
}

/** Writes blobs below `root`, at a store's paths; tars as in sealed artifacts. */
export async function makeArtifact(
  root: string,
  files: readonly FileOfTest[],
  more: { readonly annotations?: Record<string, string>; readonly upstreamConfig?: string } = {}
): Promise<Artifact> {
  const blobPath = (digest: Sha256Digest): string => join(root, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))
  const entries: ManifestFile[] = []
  for (const { name, kind, content, ...rest } of files) {
    const bytes =
      typeof content === 'string' || content instanceof Uint8Array ? Buffer.from(content) : await tarOf(content)
    const digest = digestFromHex(createHash('sha256').update(bytes).digest('hex'))
    mkdirSync(dirname(blobPath(digest)), { recursive: true })
    writeFileSync(blobPath(digest), bytes, { mode: 0o444 })
    entries.push({ name, kind, digest, size: bytes.length, ...rest })
  }
  const manifestDigest = digestFromHex(createHash('sha256').update(JSON.stringify(entries)).digest('hex'))
  const { annotations = {}, upstreamConfig } = more
  return { root, files: entries, manifest: { files: entries, annotations }, manifestDigest, upstreamConfig, blobPath }
}

async function tarOf(members: Readonly<Record<string, Uint8Array | string>>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  const sources = Object.entries(members).map(([name, content]) => {
    const bytes = Buffer.from(content)
    return { name, sizeBytes: bytes.length, open: () => [bytes] }
  })
  for await (const chunk of writeTar(sources)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

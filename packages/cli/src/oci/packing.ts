import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { View } from '@svc/client'
import type { PackedImage, PackFile, PackInput } from '@svc/oci'
import { type Sha256Digest, tryParseDigest } from '@svc/ref'
import { CliError } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { canonicalRef, shortRef } from '../reference.ts'
import type { Session } from '../session.ts'

/** Documents of an artifact are small; what is larger is none. */
const MAX_DOCUMENT_BYTES = 64 << 20

/** How a model is passed on. */
export interface PackOptions {
  /** An ordinary image instead of an artifact. */
  readonly image?: boolean
  /** Also what is private, or came from a repository that asks for access. */
  readonly withheld?: boolean
}

/** What is known of a model before it is packed. */
export interface Subject {
  readonly canonical: string
  /** `ns/name:quant`; absent where it has no name here. */
  readonly ref: string | undefined
  readonly quant: string | undefined
}

/**
 * Finds what a reference means, and whether it may be passed on.
 * @throws CliError naming `--withheld` for what is private or restricted; ClientError, RefError
 */
export async function subjectOf(session: Session, text: string, { withheld }: PackOptions): Promise<Subject> {
  const canonical = await canonicalRef(session, text)
  const { ns, name, quant, manifestDigest } = await session.client.resolve(canonical)
  if (withheld !== true) {
    const { namespaces } = await session.client.models()
    const members = namespaces.flatMap((entry) => entry.members).filter(({ manifest }) => manifest === manifestDigest)
    const why = members.some((member) => member.private)
      ? 'is private'
      : members.some(({ restricted }) => restricted === true)
        ? 'came from a repository that asks for access'
        : members.length === 0
          ? 'has no name here that says whether it may be passed on'
          : undefined
    if (why !== undefined) {
      const hint = 'if you mean to pass it on all the same, add --withheld'
      throw new CliError(EXIT.usage, `${shortRef(canonical)} ${why}`, { code: 'E_WITHHELD', hint })
    }
  }
  return { canonical, quant, ref: quant === undefined ? undefined : `${ns}/${name}:${quant}` }
}

/** Packs a model from its view, whose files have their real names. @throws OciError, ClientError, CliError */
export async function packView(
  session: Session,
  view: View,
  subject: Subject,
  { image }: PackOptions
): Promise<PackedImage> {
  const oci = await import('@svc/oci')
  const manifest = await jsonBlob(session, view.manifestDigest)
  const files: PackFile[] = []
  for (const { name, path, size, kind, role, digest } of view.files) {
    const known = digest === undefined ? undefined : tryParseDigest(digest)
    files.push({ name, path, kind, role, sizeBytes: size, digest: known ?? (await digestOfFile(path, session.signal)) })
  }
  const entries = (manifest.files ?? []) as readonly { readonly kind: string; readonly digest: string }[]
  const config = entries.find(({ kind }) => kind === 'config')
  const input: PackInput = {
    files,
    manifestDigest: tryParseDigest(view.manifestDigest)!,
    annotations: manifest.annotations as Record<string, string>,
    ref: subject.ref,
    ...(config !== undefined && { model: await jsonBlob(session, config.digest) })
  }
  return image === true ? oci.packImage(input, undefined, { signal: session.signal }) : oci.packArtifact(input)
}

/** Files of a view's own are small: a configuration, the members of a tokenizer. */
async function digestOfFile(path: string, signal: AbortSignal): Promise<Sha256Digest> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Buffer)
  return tryParseDigest(`sha256:${hash.digest('hex')}`)!
}

/** A document of the store, which was checked when it came in. */
async function jsonBlob(session: Session, digest: string): Promise<Readonly<Record<string, unknown>>> {
  const { body, sizeBytes } = await session.client.readBlob(digest)
  if (sizeBytes > MAX_DOCUMENT_BYTES) throw new CliError(EXIT.failed, `${digest} is no document of a model`)
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>
}

import type { View } from '@svc/client'
import type { PackedImage, PackFile, PackInput } from '@svc/oci'
import { tryParseDigest } from '@svc/ref'
import { CliError } from '../errors.ts'
import type { Session } from '../session.ts'
import { jsonDocument } from './documents.ts'
import { withDigests } from './file-digest.ts'
import { withHeldViews } from './held-view.ts'
import { canonicalRef, shortRef } from './reference.ts'

const MAX_CONFIG_BYTES = 64 << 20

export interface PackOptions {
  /** Pack an ordinary image instead of an artifact. */
  readonly image?: boolean
  /** Include what is withheld. */
  readonly withheld?: boolean
}

export interface ModelToPack {
  readonly canonical: string
  /** `ns/name:quant`; absent if it has no name here. */
  readonly ref: string | undefined
  /** Withheld, and passed on at the user's request. */
  readonly isWithheld: boolean
}

/**
 * Resolves a reference, and asks the daemon whether the model may be passed on by a door.
 * @throws CliError naming `--withheld` for what is withheld; ClientError, RefError
 */
async function resolveForPacking(
  session: Session,
  text: string,
  door: 'export' | 'push' | 'publish',
  { withheld }: PackOptions
): Promise<ModelToPack> {
  const canonical = await canonicalRef(session, text)
  const { ns, name, quant } = await session.client.resolve(canonical)
  const { doors } = await session.client.why(canonical)
  const asked = doors.find((each) => each.door === door)
  const isWithheld = asked?.given !== true
  if (isWithheld && withheld !== true) {
    const hint = 'to pass it on anyway, add --withheld'
    const reason = asked?.withheld?.reason ?? 'the daemon does not say that it may be passed on'
    throw new CliError('usage', `${shortRef(canonical)} is withheld: ${reason}`, { code: 'E_WITHHELD', hint })
  }
  return { canonical, isWithheld, ref: quant === undefined ? undefined : `${ns}/${name}:${quant}` }
}

/** Resolves models, and holds their views while `work` packs them or reads their files. @throws as {@link resolveForPacking} */
export async function withModelsToPack<T>(
  session: Session,
  texts: readonly string[],
  door: 'export' | 'push' | 'publish',
  options: PackOptions,
  work: (models: readonly ModelToPack[], views: readonly View[]) => Promise<T>
): Promise<T> {
  const models: ModelToPack[] = []
  for (const text of texts) models.push(await resolveForPacking(session, text, door, options))
  const refs = models.map(({ canonical }) => canonical)
  return withHeldViews(session, refs, (views) => work(models, views))
}

/** Packs a model from its view, in which files have their real names. @throws OciError, ClientError, CliError */
export async function packView(
  session: Session,
  view: View,
  subject: ModelToPack,
  { image }: PackOptions
): Promise<PackedImage> {
  const oci = await import('@svc/oci')
  const manifest = await jsonDocument(session.client, view.manifestDigest)
  const given = await withDigests(
    view.files.filter(({ own }) => own !== true),
    { signal: session.signal }
  )
  const files = given.map(({ size: sizeBytes, ...file }): PackFile => ({ ...file, sizeBytes }))
  const entries = (manifest.files ?? []) as readonly { readonly kind: string; readonly digest: string }[]
  const config = entries.find(({ kind }) => kind === 'config')
  const input: PackInput = {
    files,
    manifestDigest: tryParseDigest(view.manifestDigest)!,
    annotations: manifest.annotations as Record<string, string>,
    ref: subject.ref,
    isWithheld: subject.isWithheld,
    ...(config !== undefined && { model: await jsonDocument(session.client, config.digest, MAX_CONFIG_BYTES) })
  }
  return image === true ? oci.packImage(input, { signal: session.signal }) : oci.packArtifact(input)
}

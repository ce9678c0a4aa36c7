import type { Job } from '@svc/client'
import { parseRef } from '@svc/ref'
import { readManifestBlob } from '../models/documents.ts'
import { membersOf } from '../models/models-here.ts'
import type { Session } from '../session.ts'
import { escapeGlob } from './file-globs.ts'

/** The origin of an artifact at the hub, and how to fetch it again. */
export interface HubOrigin {
  readonly repo: string
  /** A commit. */
  readonly revision: string
  /** Its name here; undefined if a fetch under it would replace another artifact. */
  readonly as: string | undefined
  /** Its files were taken as they are (spec rec.32). */
  readonly isOpaque: boolean
  readonly isPrivate: boolean
  /** The names of its weights here. */
  readonly weights: readonly string[]
}

/** The hub origin of a reference's artifact; undefined if it did not come from there. Does not contact the hub. */
export async function hubOrigin({ client }: Session, ref: string): Promise<HubOrigin | undefined> {
  const result = await client.open(ref)
  const { annotations = {}, files = [] } = await readManifestBlob(client, result.manifestDigest)
  const { 'svc.hf.repo': repo, 'svc.hf.revision': revision } = annotations
  if (repo === undefined || revision === undefined) return undefined
  // the name of a digest, or of a tag's older snapshot, may refer to something else by now
  const { ns, name } = parseRef(ref)
  const held = membersOf(await client.models()).filter(({ manifest }) => manifest === result.manifestDigest)
  const home = held.find((member) => member.repo === `${ns}/${name}`) ?? held[0]
  return {
    repo,
    revision,
    as: home?.repo,
    isPrivate: home?.private === true,
    isOpaque: files.some(({ kind }) => kind === 'opaque'),
    weights: files.filter(({ kind }) => kind.startsWith('weights.') || kind === 'opaque').map((file) => file.name)
  }
}

/** Starts the import that produces the same artifact: same commit, same weights, same names. */
export async function importAgain(session: Session, origin: HubOrigin): Promise<Job> {
  const { client } = session
  const { repo, revision, as, isPrivate, weights } = origin
  // what was taken as it is was its owner's word
  const opaque = origin.isOpaque ? { recognise: 'opaque' as const, allowPickle: true } : {}
  const plan = await client.planHf({ repo, revision, ...opaque })
  const there = new Set(plan.files.map(({ name }) => name))
  const wereNormalized = weights.some((name) => !there.has(name))
  return client.importHf({
    repo,
    revision,
    ...(as !== undefined && { as }),
    ...(weights.length > 0 && { files: weights.map(escapeGlob) }),
    ...(wereNormalized && { names: 'normalized' as const }),
    ...opaque,
    ...(isPrivate && { private: true })
  })
}

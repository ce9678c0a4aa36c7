import type { Job } from '@svc/client'
import { parseRef } from '@svc/ref'
import { readManifest } from './manifest-facts.ts'
import type { Session } from './session.ts'

/** Where an artifact came from, and how it is fetched from there again. */
export interface HubOrigin {
  readonly repo: string
  /** A commit. */
  readonly revision: string
  /** The name that it has here; undefined where a fetch would take the place of another artifact. */
  readonly as: string | undefined
  readonly isPrivate: boolean
  /** The names of its weights here. */
  readonly weights: readonly string[]
}

/** Of what a reference stands for; undefined for what did not come from the hub. The hub is not asked. */
export async function hubOrigin({ client }: Session, ref: string): Promise<HubOrigin | undefined> {
  const result = await client.open(ref)
  const { annotations = {}, files = [] } = await readManifest(client, result)
  const { 'svc.hf.repo': repo, 'svc.hf.revision': revision } = annotations
  if (repo === undefined || revision === undefined) return undefined
  // of a digest, or of a tag's older snapshot, the name may stand for something else by now
  const { ns, name } = parseRef(ref)
  const { namespaces } = await client.models()
  const homes = namespaces.filter(({ members }) => members.some(({ manifest }) => manifest === result.manifestDigest))
  const home = homes.find((each) => each.ns === ns && each.name === name) ?? homes[0]
  const held = home?.members.find(({ manifest }) => manifest === result.manifestDigest)
  return {
    repo,
    revision,
    as: home && `${home.ns}/${home.name}`,
    isPrivate: held?.private === true,
    weights: files.filter(({ kind }) => kind.startsWith('weights.')).map((file) => file.name)
  }
}

/** Starts the import that gives the same artifact: the same commit, the same weights, named as they were. */
export async function importAgain(session: Session, origin: HubOrigin): Promise<Job> {
  const { client } = session
  const { repo, revision, as, isPrivate, weights } = origin
  const plan = await client.planHf({ repo, revision })
  const there = new Set(plan.files.map(({ name }) => name))
  const wereNormalized = weights.some((name) => !there.has(name))
  return client.importHf({
    repo,
    revision,
    ...(as !== undefined && { as }),
    ...(weights.length > 0 && { files: weights.map(escapeGlob) }),
    ...(wereNormalized && { names: 'normalized' as const }),
    ...(isPrivate && { private: true })
  })
}

const escapeGlob = (name: string): string => name.replace(/[\\*?[\]{}()!+@|^$]/g, '\\$&')

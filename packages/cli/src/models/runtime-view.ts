import { ClientError, type View, type ViewBody } from '@svc/client'
import { runtimePath, ViewError } from '@svc/view'
import { CliError, jobFailure } from '../errors.ts'
import { follow } from '../follow.ts'
import { count } from '../format.ts'
import { makingRoom } from '../questions/making-room.ts'
import type { Session } from '../session.ts'
import { membersOf } from './models-here.ts'
import { canonicalRef, shortRef } from './reference.ts'

export function splitTarget(text: string): { readonly ref: string; readonly file: string | undefined } {
  const hash = text.indexOf('#')
  return hash < 0 ? { ref: text, file: undefined } : { ref: text.slice(0, hash), file: text.slice(hash + 1) }
}

/** The managed view of a model, or the one that `wanted` describes. @throws CliError, ClientError */
export async function madeView(session: Session, ref: string, wanted: Omit<ViewBody, 'ref'> = {}): Promise<View> {
  const canonical = await canonicalRef(session, ref)
  const make = async (): Promise<View> => {
    const view = await session.client.makeView({ ref: canonical, ...wanted })
    for (const warning of view.warnings ?? []) session.note(warning)
    return view
  }
  try {
    return await make()
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'E_NOT_FOUND') throw error
    if (!(await bringBack(session, canonical))) throw incomplete(canonical, error.candidates, error)
    return make()
  }
}

/** Fetches the weights of a model that was evicted. @returns false if it is incomplete for another reason */
async function bringBack(session: Session, canonical: string): Promise<boolean> {
  const { manifestDigest } = await session.client.resolve(canonical)
  const members = membersOf(await session.client.models())
  if (!members.some(({ manifest, away }) => manifest === manifestDigest && away === true)) return false
  session.note(`${shortRef(canonical)} is away: fetching it`)
  await makingRoom(session, {}, async (field) => {
    const started = await session.client.ensure({ ref: canonical, ...field })
    // the JSON document is that of the command
    const job = session.json ? await session.client.waitJob(started) : await follow(session, started)
    if (job.state === 'failed') throw jobFailure(job)
  })
  return true
}

export const incomplete = (ref: string, missing: readonly string[] | undefined, cause?: unknown): CliError =>
  new CliError(
    'notFound',
    `${shortRef(ref)} is not complete here${missing === undefined || missing.length === 0 ? '' : `: ${count(missing.length, 'file')} missing`}`,
    {
      code: 'E_NOT_FOUND',
      hint: `fetch what is missing with: svc pull ${shortRef(ref)}`,
      cause
    }
  )

/** The path of the file whose name is or starts with `file`, else of the weights. @throws CliError listing the files */
export function loadPath(view: View, file: string | undefined): string {
  type Files = Parameters<typeof runtimePath>[0]['files']
  const files = view.files.map(({ size, ...more }) => ({ ...more, sizeBytes: size })) as unknown as Files
  try {
    return runtimePath({ folder: view.folder, files }, file).path
  } catch (error) {
    if (!(error instanceof ViewError)) throw error
    const ref = shortRef(view.ref)
    throw new CliError(error.code === 'E_AMBIGUOUS' ? 'usage' : 'notFound', error.message, {
      code: error.code === 'E_AMBIGUOUS' ? 'E_USAGE' : 'E_NOT_FOUND',
      candidates: error.details.candidates?.map((name) => `${ref}#${name}`),
      cause: error
    })
  }
}

/**
 * Removes the managed views of artifacts whose names are about to be removed: a view made on demand, by `svc path`,
 * would keep using their space. Views at places that a user chose stay, and so do those that a running command holds.
 */
export async function letGoOfViews(session: Session, manifests: ReadonlySet<string>): Promise<void> {
  for (const { path, managed, manifestDigest, heldUntil } of await session.client.views())
    if (managed && heldUntil === undefined && manifests.has(manifestDigest)) await session.client.removeView({ path })
}

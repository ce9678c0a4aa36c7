import { dirname, resolve } from 'node:path'
import { ClientError, createClient, type View } from '@svc/client'
import { makeFolders } from '@svc/internal-files'
import { isDigest } from '@svc/ref'
import { CliError, usage } from '../errors.ts'
import { count, formatBytes, shortDigest } from '../format.ts'
import { type ComfyuiUse, comfyuiFolder, comfyuiPlace, prepareComfyui, writeComfyuiPaths } from '../models/comfyui.ts'
import { membersOf } from '../models/models-here.ts'
import { olderViews } from '../models/older-views.ts'
import { canonicalRef } from '../models/reference.ts'
import { madeView } from '../models/runtime-view.ts'
import { canAsk, saysYes } from '../questions/question.ts'
import type { Session } from '../session.ts'
import { listStanding, removedStanding } from './standing.ts'

export interface ViewCommandOptions {
  readonly layout: 'files' | 'hf'
  readonly copy?: boolean
  readonly hardlink?: boolean
  readonly comfyui?: ComfyuiUse | true
  readonly replace?: boolean
  readonly refresh?: string | true
  readonly rm?: string
}

/** `svc view REF DIR`, `svc view` to list views, `svc view --refresh [DIR]`, `svc view --rm DIR [REF]`. */
export async function view(
  session: Session,
  ref: string | undefined,
  dir: string | undefined,
  options: ViewCommandOptions
): Promise<void> {
  if (options.rm !== undefined) {
    if (dir !== undefined) throw usage('--rm takes the folder of a view, and at most one model in it')
    return removeView(session, resolve(session.terminal.cwd, options.rm), ref)
  }
  if (options.refresh !== undefined) {
    if (ref !== undefined) throw usage('--refresh takes the folder of a view, or nothing for all of them')
    const path = options.refresh === true ? undefined : resolve(session.terminal.cwd, options.refresh)
    return refreshViews(session, path)
  }
  if (ref === undefined) return listViews(session)
  if (dir === undefined)
    throw usage(
      'the destination folder is missing',
      `svc view ${ref} DIR; svc path --dir ${ref} prints the managed one`
    )
  const base = resolve(session.terminal.cwd, dir)
  const { layout, comfyui } = options
  let path = base
  if (comfyui !== undefined) {
    const canonical = await canonicalRef(session, ref)
    const { files } = await session.client.open(canonical)
    const use = comfyuiFolder(
      comfyui,
      files.map(({ name = '' }) => name)
    )
    path = comfyuiPlace(base, use, canonical)
    await prepareComfyui(base, use)
  } else {
    // makes no folder for a model that is not here
    await session.client.resolve(await canonicalRef(session, ref))
    await makeFolders(dirname(path))
  }
  const mode = options.copy === true ? 'copy' : options.hardlink === true ? 'hardlink' : 'symlink'
  const make = (more: { readonly replace?: false }): Promise<View> =>
    watched(session, path, () => madeView(session, ref, { path, layout, mode, ...more }))
  const made = await (options.replace === true ? make({}) : keepingOthers(session, path, make))
  const comfyuiPaths = comfyui === undefined ? undefined : await writeComfyuiPaths(base)
  if (session.json) return session.document({ ...made, comfyuiPaths })
  tellMade(session, made, comfyuiPaths)
}

function tellMade(session: Session, made: View, comfyuiPaths: string | undefined): void {
  session.print(made.folder)
  session.note(`${made.made ? '' : 'already there: '}${count(made.files.length, 'file')} in ${made.path}`)
  if (made.made && made.path === session.terminal.cwd)
    session.note('the current folder was replaced: cd . shows the new one')
  if (comfyuiPaths !== undefined) session.note(`start ComfyUI with: --extra-model-paths-config ${comfyuiPaths}`)
  if (made.layout === 'hf') session.note(`use it with: HF_HUB_CACHE=${made.path} HF_HUB_OFFLINE=1`)
}

/**
 * Makes a view. One of another model there is replaced only if a person at the terminal says so.
 * @throws CliError naming the models that it shows
 */
async function keepingOthers(
  session: Session,
  path: string,
  make: (more: { readonly replace?: false }) => Promise<View>
): Promise<View> {
  try {
    return await make({ replace: false })
  } catch (error) {
    const shown = error instanceof ClientError && error.code === 'E_BAD_REQUEST' ? (error.candidates ?? []) : []
    if (shown.length === 0 || !shown.every(isDigest)) throw error
    const refs = shown.map(await namesHere(session))
    const what = `${path} is a view of ${refs.join(', ')}`
    if (canAsk(session) && (await saysYes(session, `${what}. Replace it? `))) return make({})
    throw new CliError('usage', `${what}; it was not replaced`, {
      candidates: refs,
      hint: 'name another folder, or use --replace',
      cause: error
    })
  }
}

const LOOK_MS = 1_000
const SAY_MS = 5_000

/** Shows the progress of the copy; Ctrl-C cancels the view. */
async function watched(session: Session, path: string, make: () => Promise<View>): Promise<View> {
  // a client that Ctrl-C does not abort
  const client = createClient({ socketPath: session.client.socketPath })
  const over = new AbortController()
  const look = async (): Promise<void> => {
    for (let saidAt = session.clock.monotonic(); ; ) {
      await session.clock.sleep(LOOK_MS, over.signal)
      const making = (await client.views({ signal: over.signal })).find((view) => view.path === path)?.making
      if (making === undefined || making.bytesTotal === 0 || session.clock.monotonic() - saidAt < SAY_MS) continue
      saidAt = session.clock.monotonic()
      session.note(`copying ${formatBytes(making.bytesDone)} of ${formatBytes(making.bytesTotal)}`)
    }
  }
  const looking = look().catch(() => undefined)
  try {
    return await make()
  } catch (error) {
    if (!session.signal.aborted) throw error
    await client.removeView({ path }).catch(() => undefined)
    const message = 'interrupted; the folder is as it was before'
    throw new CliError('interrupted', message, { code: 'E_INTERRUPTED', cause: error })
  } finally {
    over.abort()
    await looking
    client.close()
  }
}

/** Moves views of older versions to what their name has now. */
async function refreshViews(session: Session, path: string | undefined): Promise<void> {
  const moved: object[] = []
  for (const { view, manifest, newer } of await olderViews(session, path)) {
    const { layout, mode } = view
    await madeView(session, newer.ref, { path: view.path, layout, mode })
    // a hub cache keeps its models until they are removed
    if (layout === 'hf') await session.client.removeView({ path: view.path, ref: `svc:///${newer.repo}@${manifest}` })
    moved.push({ path: view.path, ref: newer.ref })
    if (!session.json) session.print(view.path)
    session.note(`${view.path} shows ${newer.ref} as it is now`)
  }
  if (session.json) return session.document({ moved })
  if (moved.length === 0) session.note('no view shows an older version')
}

async function removeView(session: Session, path: string, typed: string | undefined): Promise<void> {
  if (typed === undefined && (await removedStanding(session, path))) return
  const ref = typed === undefined ? undefined : await canonicalRef(session, typed)
  const answer = await session.client.removeView({ path, ...(ref !== undefined && { ref }) })
  if (session.json) return session.document(answer)
  session.note(
    answer.removed
      ? `removed ${ref === undefined ? '' : `${ref} from `}${answer.path}`
      : `${answer.path} was already gone; it no longer keeps its model`
  )
}

/** The references of an artifact in this store, for display. */
async function namesHere({ client }: Session): Promise<(digest: string) => string> {
  const names = Map.groupBy(membersOf(await client.models()), ({ manifest }) => manifest)
  return (digest) => {
    const refs = names.get(digest)?.map(({ ref }) => ref)
    return refs?.join(', ') ?? `without a name, @${shortDigest(digest)}`
  }
}

async function listViews(session: Session): Promise<void> {
  const views = await session.client.views()
  if (session.json) return session.document({ views, standing: await session.client.standingViews() })
  if (!session.quiet) await listStanding(session)
  if (session.quiet) for (const { path } of views) session.print(path)
  else if (views.length > 0) {
    const nameOf = await namesHere(session)
    const older = new Map((await olderViews(session)).map(({ view, newer }) => [view.path, newer.ref]))
    const rows = views.map(
      ({ path, layout, mode, present, managed, heldUntil, manifestDigest, others = [], needed }) => [
        [manifestDigest, ...others].map(nameOf).join(', '),
        layout,
        mode,
        [
          managed ? 'managed' : '',
          present ? '' : 'not found now',
          heldUntil === undefined ? '' : 'in use',
          older.has(path) ? `older than ${older.get(path)}: svc view --refresh moves it` : '',
          needed === false && !older.has(path)
            ? `removed or replaced: ${managed ? 'svc gc' : `svc view --rm ${path}`} frees its space`
            : ''
        ]
          .filter((word) => word !== '')
          .join(', '),
        path
      ]
    )
    session.table([['MODEL', 'LAYOUT', 'MODE', 'STATE', 'VIEW'], ...rows])
  }
}

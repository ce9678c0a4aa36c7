import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { StandingView, StandingViewBody } from '@svc/client'
import { type StandingLayout, toolFolder } from '@svc/view'
import { count, formatBytes, shellWord } from '../format.ts'
import type { Session } from '../session.ts'

/** `svc view add LAYOUT [DIR] [--match GLOB]… [--copy] [--reload URL]` */
export async function addStanding(
  session: Session,
  layout: StandingLayout,
  dir: string | undefined,
  options: Pick<StandingViewBody, 'match' | 'copy' | 'reload'>
): Promise<void> {
  const { cwd, env } = session.terminal
  const path = dir === undefined ? await toolFolder(layout, { home: env.HOME ?? homedir(), env }) : resolve(cwd, dir)
  const view = await session.client.addStandingView({ layout, path, ...options })
  if (session.json) return session.document(view)
  session.print(view.path)
  session.note(`it follows this store: ${count(view.entries, 'file')}; ${HOW_TO_USE[layout](view.path)}`)
  if (view.problem !== undefined) session.note(`warning: ${view.problem}`)
  tellTaken(session, view)
}

const HOW_TO_USE: Readonly<Record<StandingLayout, (path: string) => string>> = {
  hf: (path) => `programs find the models with HF_HUB_CACHE=${path}`,
  llama: (path) => `start llama-server --models-dir ${path}, or --models-preset ${path}/models.ini`,
  lmstudio: () => 'LM Studio lists the models',
  comfyui: (path) => `start ComfyUI with --extra-model-paths-config ${path}/extra_model_paths.yaml`,
  ollama: () => 'ollama run svc/NS/NAME:QUANT'
}

export function tellTaken(session: Session, { taken = [], path }: StandingView): void {
  for (const place of taken)
    session.note(`warning: ${place} is a file of the tool itself and stays; move it away, then: svc view`)
  if (taken.length > 0) session.note(`${path} shows the other models`)
}

/** The space of copies in folders that follow, which lies beyond the store. */
export async function copyLines({ client }: Session): Promise<readonly string[]> {
  const views = await client.standingViews()
  return views.flatMap(({ path, copiedBytes }) =>
    copiedBytes === undefined
      ? []
      : [`${formatBytes(copiedBytes)} more of copies in ${path}; to free them: svc view --rm ${shellWord(path)}`]
  )
}

/** Takes what is ours out of a folder that follows. @returns false if none at this path does */
export async function removedStanding(session: Session, path: string): Promise<boolean> {
  const views = await session.client.standingViews()
  if (!views.some((view) => view.path === path)) return false
  const removed = await session.client.removeStandingView({ path })
  if (session.json) session.document(removed)
  else session.note(`${path} no longer follows this store; the tool's own files in it stay`)
  return true
}

export async function listStanding(session: Session): Promise<void> {
  const views = await session.client.standingViews()
  if (views.length === 0) return
  session.table([
    ['FOLLOWS', 'LAYOUT', 'FILES', 'STATE'],
    ...views.map(({ path, layout, entries, match = [], problem = '', copiedBytes = 0, bytesDone }) => {
      const copies = copiedBytes > 0 ? `${formatBytes(copiedBytes)} of copies` : ''
      const copying = bytesDone === undefined ? '' : `copying, ${formatBytes(bytesDone)} so far`
      const words = [match.join(', '), copies, copying, problem]
      return [path, layout, String(entries), words.filter((word) => word !== '').join('; ')]
    })
  ])
  for (const view of views) tellTaken(session, view)
}

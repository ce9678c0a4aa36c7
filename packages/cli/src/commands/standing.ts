import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { StandingView } from '@svc/client'
import { type StandingLayout, toolFolder } from '@svc/view'
import { count } from '../format.ts'
import type { Session } from '../session.ts'

/** `svc view add LAYOUT [DIR] [--match GLOB]…` */
export async function addStanding(
  session: Session,
  layout: StandingLayout,
  dir: string | undefined,
  { match }: { readonly match?: readonly string[] }
): Promise<void> {
  const { cwd, env } = session.terminal
  const path = dir === undefined ? await toolFolder(layout, { home: env.HOME ?? homedir(), env }) : resolve(cwd, dir)
  const view = await session.client.addStandingView({ layout, path, ...(match !== undefined && { match: [...match] }) })
  if (session.json) return session.document(view)
  session.print(view.path)
  session.note(`it follows this store: ${count(view.entries, 'file')}; ${HOW_TO_USE[layout](view.path)}`)
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
    ...views.map(({ path, layout, entries, match = [], problem }) => [
      path,
      layout,
      String(entries),
      [match.join(', '), problem ?? ''].filter((word) => word !== '').join('; ')
    ])
  ])
  for (const view of views) tellTaken(session, view)
}

import { homedir } from 'node:os'
import type { Advise } from '@svc/internal-state'
import { type Tool, ToolFolders } from '@svc/view'

/** A file that a tool downloaded. */
export interface ToolDownload {
  readonly tool: Tool
  readonly path: string
}

/** The caches of the user's tools. Made for each import: tools come and move. */
export const toolsHere = (): ToolFolders => new ToolFolders({ home: homedir(), env: process.env })

/** The first of the files that a tool downloaded, perhaps with a login. */
export async function downloadAmong(
  files: Iterable<{ readonly path: string }>,
  tools: Pick<ToolFolders, 'toolOf'>
): Promise<ToolDownload | undefined> {
  for (const { path } of files) {
    const tool = await tools.toolOf(path)
    if (tool !== undefined) return { tool, path }
  }
  return undefined
}

/** @param as the name under which it is imported */
export const withheldWarning = (as: string, why: string, advise: Advise): string =>
  `it is withheld from others: ${why}${advise({ to: 'share-anyway', ref: as })}`

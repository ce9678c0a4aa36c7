import { join } from 'node:path'
import type { Terminal } from './terminal.ts'

/** The folder of this user's own state, `$XDG_STATE_HOME/svc`, else `~/.local/state/svc`; undefined without a home. */
export function stateFolder({ XDG_STATE_HOME, HOME }: Terminal['env']): string | undefined {
  const state = XDG_STATE_HOME?.startsWith('/') ? XDG_STATE_HOME : HOME && join(HOME, '.local/state')
  return state ? join(state, 'svc') : undefined
}

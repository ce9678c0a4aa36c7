import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programInPath } from '@svc/internal-files'

type Env = Readonly<Record<string, string | undefined>>

/** Whether the person sits at another machine. */
export const isRemote = ({ SSH_CONNECTION }: Env): boolean => SSH_CONNECTION !== undefined && SSH_CONNECTION !== ''

/** Whether the browser runs on this system: that of Windows, beside its Linux, reaches it by `localhost` only. */
export const isBrowserHere = (env: Env): boolean => !isRemote(env) && env.WSL_DISTRO_NAME === undefined

/** Has the desktop open a path, in a program of its own choice. @returns false where there is no desktop */
export function openOnDesktop(env: Env, path: string): boolean {
  const program = isRemote(env) ? undefined : openerOf(env)
  if (program === undefined) return false
  spawn(program, [path], { stdio: 'ignore', detached: true, env: { ...env } })
    .on('error', () => undefined)
    .unref()
  return true
}

function openerOf(env: Env): string | undefined {
  if (process.platform === 'darwin') return '/usr/bin/open'
  return env.DISPLAY || env.WAYLAND_DISPLAY ? programInPath('xdg-open', env) : undefined
}

/**
 * Opens a link in the browser. Every user of the machine sees the arguments of programs, so these name a file that is
 * ours alone and leads on to the link. @returns how to remove that file; undefined where there is no desktop
 */
export function openInBrowser(env: Env, link: string): (() => void) | undefined {
  const folder = mkdtempSync(join(env.XDG_RUNTIME_DIR?.startsWith('/') ? env.XDG_RUNTIME_DIR : tmpdir(), 'svc-ui-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  const file = join(folder, 'open.html')
  writeFileSync(file, `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${link}">\n`, {
    mode: 0o600
  })
  if (openOnDesktop(env, file)) return remove
  remove()
  return undefined
}

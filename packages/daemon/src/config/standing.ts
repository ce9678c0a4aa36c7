import { STANDING_LAYOUTS } from '@svc/client/protocol'
import { isLoopback } from '@svc/internal-net'
import type { StandingFolder } from '@svc/library/parts'
import { ConfigError } from '../errors.ts'
import { absolutePath } from './path.ts'
import { globsOf } from './trust.ts'

export const VIEWS_KEYS = {
  layout: { type: 'string', summary: '"hf", "llama", "lmstudio", "comfyui" or "ollama"' },
  path: { type: 'string', summary: "the tool's folder" },
  match: { type: 'strings', summary: 'models to show: "ns/name:quant", with "*" in all parts; default: all' },
  copy: { type: 'boolean', summary: 'copies instead of links' },
  reload: { type: 'string', summary: "layout llama: the address of llama-server's router on this machine" }
} as const

export interface ViewsTable {
  readonly layout?: string
  readonly path?: string
  readonly match?: readonly string[]
  readonly copy?: boolean
  readonly reload?: string
}

/** @throws ConfigError naming the table and the problem */
export function standingViews(tables: readonly ViewsTable[] = []): readonly StandingFolder[] {
  const views = tables.map((table, at) => standingView(table, `[[views]] ${at + 1}`))
  for (const [i, { path }] of views.entries())
    if (views.findIndex((other) => other.path === path) !== i)
      throw new ConfigError(`[[views]] ${i + 1}: ${path} is the folder of an earlier table; each has one of its own`)
  return views
}

/** @param label for messages. @throws ConfigError */
export function standingView({ layout, path, match = [], copy, reload }: ViewsTable, label: string): StandingFolder {
  const wrong = (what: string): ConfigError => new ConfigError(`${label}: ${what}`)
  const known = STANDING_LAYOUTS.find((each) => each === layout)
  if (known === undefined) throw wrong(`layout is ${STANDING_LAYOUTS.map((each) => `"${each}"`).join(', ')}`)
  if (path === undefined || path === '') throw wrong("path is missing; write the tool's folder")
  // without a quant, all quants
  const patterns = match.map((text) => (text.includes(':') ? text : `${text}:*`))
  const matches = match.length === 0 ? () => true : globsOf(patterns, (what) => wrong(`match: ${what}`))
  if (reload !== undefined && (layout !== 'llama' || !isOwnServer(reload)))
    throw wrong(`reload is for the layout "llama": an address of this machine, such as "http://127.0.0.1:8080"`)
  return { layout: known, path: absolutePath(path, 'path', wrong), match, matches, copy, reload }
}

/** Another machine's server reads none of these folders. */
function isOwnServer(text: string): boolean {
  const { protocol, hostname } = URL.parse(text) ?? {}
  return protocol === 'http:' && isLoopback({ host: (hostname ?? '').replace(/^\[|\]$/g, '') })
}

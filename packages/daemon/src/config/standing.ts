import { STANDING_LAYOUTS } from '@svc/client/protocol'
import type { StandingFolder } from '@svc/library/parts'
import { ConfigError } from '../errors.ts'
import { absolutePath } from './path.ts'
import { globsOf } from './trust.ts'

export const VIEWS_KEYS = {
  layout: { type: 'string', summary: '"hf", "llama", "lmstudio", "comfyui" or "ollama"' },
  path: { type: 'string', summary: "the tool's folder" },
  match: { type: 'strings', summary: 'models to show: "ns/name:quant", with "*" in all parts; default: all' }
} as const

export interface ViewsTable {
  readonly layout?: string
  readonly path?: string
  readonly match?: readonly string[]
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
export function standingView({ layout, path, match = [] }: ViewsTable, label: string): StandingFolder {
  const wrong = (what: string): ConfigError => new ConfigError(`${label}: ${what}`)
  const known = STANDING_LAYOUTS.find((each) => each === layout)
  if (known === undefined) throw wrong(`layout is ${STANDING_LAYOUTS.map((each) => `"${each}"`).join(', ')}`)
  if (path === undefined || path === '') throw wrong("path is missing; write the tool's folder")
  // without a quant, all quants
  const patterns = match.map((text) => (text.includes(':') ? text : `${text}:*`))
  const matches = match.length === 0 ? () => true : globsOf(patterns, (what) => wrong(`match: ${what}`))
  return { layout: known, path: absolutePath(path, 'path', wrong), match, matches }
}

import { signal } from '@preact/signals'

export const VIEW_NAMES = ['models', 'get', 'jobs', 'machine'] as const
export type ViewName = (typeof VIEW_NAMES)[number]

/** Where the page is: what the address says after `#`, so that back, forward, reload and links lead there. */
export interface PagePlace {
  readonly view: ViewName
  /** Of `models`: the one that is open, `ns/name:quant`. */
  readonly model?: string | undefined
  /** Of `get`: what was typed. */
  readonly text?: string | undefined
  /** Of `get`: the repository whose quants are shown. */
  readonly repo?: string | undefined
  /** Of `get`: the name that an import from disk suggests. */
  readonly as?: string | undefined
}

/** `#models/ns/name:quant`, `#get?text=…`; anything else leads to the models. */
export function parsePlace(hash: string): PagePlace {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2)
  const [name = '', ...rest] = path.split('/')
  const view = VIEW_NAMES.find((each) => each === name) ?? 'models'
  if (view === 'models') return { view, model: rest.length === 0 ? undefined : decode(rest.join('/')) }
  if (view !== 'get') return { view }
  const given = new URLSearchParams(query)
  const givenAs = (key: string): string | undefined => given.get(key) || undefined
  return { view, text: givenAs('text'), repo: givenAs('repo'), as: givenAs('as') }
}

export function formatPlace({ view, model, text, repo, as }: PagePlace): string {
  if (model !== undefined) return `#${view}/${model.split('/').map(encode).join('/')}`
  const given = Object.entries({ text, repo, as }).filter(([, value]) => value !== undefined) as [string, string][]
  return given.length === 0 ? `#${view}` : `#${view}?${new URLSearchParams(given)}`
}

/** Colons stay: references are read by people. */
const encode = (part: string): string => encodeURIComponent(part).replaceAll('%3A', ':')

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const place = signal<PagePlace>({ view: 'models' })

/** Follows the address. @returns how to stop */
export function followAddress(): () => void {
  const read = (): void => {
    place.value = parsePlace(location.hash)
  }
  read()
  addEventListener('hashchange', read)
  addEventListener('popstate', read)
  return () => {
    removeEventListener('hashchange', read)
    removeEventListener('popstate', read)
  }
}

/** Goes to a place, from which back leads here. */
export function go(to: PagePlace): void {
  history.pushState({ isStep: true }, '', formatPlace(to))
  place.value = to
}

/** Leaves a place that {@link go} led to, as back does; where a link led, `to` replaces it. */
export function leave(to: PagePlace): void {
  place.value = to
  const { isStep = false } = (history.state ?? {}) as { readonly isStep?: boolean }
  if (isStep) history.back()
  else history.replaceState(null, '', formatPlace(to))
}

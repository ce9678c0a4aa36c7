import type { Inventory, Job, ModelMember, Status } from '@svc/client/protocol'
import { h, render } from 'preact'
import { act } from 'preact/test-utils'
import { onTestFinished } from 'vitest'
import { openBridge } from '../src/bridge.ts'
import { Page } from '../src/page.tsx'
import { createStore } from '../src/store.ts'

export const digest = (seed: number): string => `sha256:${seed.toString(16).padStart(64, '0')}`

export const member = (quant: string, more: Partial<ModelMember> = {}): ModelMember => ({
  quant,
  manifest: digest(1),
  sizeBytes: 1024,
  complete: true,
  private: false,
  ...more
})

/** One repository for each list of members, `acme/m0` the first. */
export const inventoryOf = (...repositories: readonly (readonly ModelMember[])[]): Inventory => ({
  skeleton: true,
  note: '',
  namespaces: repositories.map((members, i) => ({
    ns: 'acme',
    name: `m${i}`,
    indexDigest: digest(2),
    indexPresent: true,
    quants: members.map(({ quant }) => quant),
    members: [...members]
  })),
  tags: []
})

export const job = (more: Partial<Job> = {}): Job => ({
  id: '01',
  kind: 'import-hf',
  ref: 'svc:///acme/m0',
  state: 'fetching',
  createdAt: '2026-01-01T00:00:00.0Z',
  ...more
})

const rates = { peers: 0, downBytesPerSecond: 0, upBytesPerSecond: 0 }
export const status = (swarm: Partial<Status['swarm']> = {}): Status => ({
  pid: 1,
  version: '0.1.0',
  root: '/srv/models',
  startedAt: '2026-01-01T00:00:00.0Z',
  jobs: { waiting: 0, fetching: 0, done: 0, failed: 0 },
  store: { blobs: 3, bytes: 3072, freeBytes: 1024 },
  swarm: { enabled: true, seed: true, seeding: 0, heldBack: [], torrents: [], ...rates, ...swarm }
})

interface Asked {
  readonly method: string
  readonly path: string
  readonly body: unknown
}
type Answer = object | ((asked: Asked) => object)

/** The page's server. Answers by `METHOD path` without the query: 404 without one, 400 for an `error`. */
export interface World {
  readonly root: HTMLElement
  readonly asked: readonly Asked[]
  /** The answers from now on; undefined: the server is gone. */
  answers: Readonly<Record<string, Answer>> | undefined
  send(event: string, data: object): Promise<void>
  click(name: string): Promise<void>
  press(key: string): Promise<void>
  /** Types into the search field. */
  type(text: string): Promise<void>
  /** Waits until answers have arrived and are drawn. */
  settle(): Promise<void>
}

/** The disk use of tests that do not care. */
const NOTHING_STORED: Readonly<Record<string, Answer>> = {
  'GET bridge/disk': { models: [], repositories: [], sharedBytes: 0, keptBytes: 0, freeableBytes: 0 }
}

/** The accessible name: the label, else the text. */
export function nameOf(element: Element): string {
  const read = element.cloneNode(true) as Element
  for (const hidden of read.querySelectorAll('[aria-hidden]')) hidden.remove()
  return (element.getAttribute('aria-label') ?? read.textContent ?? '').trim()
}

/** The page on a server of the test, with the view of `hash`. */
export async function openPage(hash: string, answers: Readonly<Record<string, Answer>>): Promise<World> {
  const asked: Asked[] = []
  const events = Object.assign(new EventTarget(), { onerror: null })
  const root = document.createElement('div')
  document.body.replaceChildren(root)
  location.hash = hash
  const bridge = openBridge(async (path, { method = '', body }) => {
    const question = { method, path, body: typeof body === 'string' ? (JSON.parse(body) as unknown) : undefined }
    asked.push(question)
    if (world.answers === undefined) throw new TypeError('Failed to fetch')
    const found = { ...NOTHING_STORED, ...world.answers }[`${method} ${path.split('?')[0]}`]
    const answer = typeof found === 'function' ? found(question) : found
    if (answer === undefined) return Response.json({ error: { code: 'E_NOT_FOUND', message: path } }, { status: 404 })
    return Response.json(answer, { status: 'error' in answer ? 400 : 200 })
  })
  const settle = (): Promise<void> => act(() => new Promise((done) => setImmediate(done)))
  const world: World = {
    root,
    asked,
    answers,
    settle,
    async send(event, data) {
      await act(() => void events.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data) })))
      await settle()
    },
    async click(name) {
      const found = [...root.querySelectorAll<HTMLElement>('button, a, input, summary')].filter(
        (each) => nameOf(each) === name || (each.closest('label')?.textContent ?? '').trim() === name
      )
      if (found.length !== 1) throw new Error(`${found.length} controls are called ${name}`)
      await act(() => found[0]!.click())
      await settle()
    },
    async press(key) {
      const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })
      await act(() => void document.activeElement?.dispatchEvent(event))
      await settle()
    },
    async type(text) {
      const field = root.querySelector<HTMLInputElement>('input[type="search"]')!
      field.value = text
      field.dispatchEvent(new Event('input', { bubbles: true }))
      await settle()
    }
  }
  await act(() => render(h(Page, { store: createStore(bridge, events) }), root))
  onTestFinished(() => render(null, root))
  await world.send('daemon', { state: 'up' })
  await world.send('status', status())
  return world
}

/**
 * `node --conditions=svc-source scripts/terminal.ts`: writes docs/guide/terminal.svg, a film of a real run of `svcd` and `svc` from
 * the sources, against a hub on loopback with small models. Nothing outside of this machine is asked.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '../packages/testkit/src/fake-hub.ts'
import { makeLlamaGgufs } from '../packages/testkit/src/llama-gguf.ts'
import { Stage } from './demo/stage.ts'

const REPO = 'acme/Tiny-GGUF'
const MODEL = 'acme/tiny-gguf:q4_k_m'
const HOME = '~/.local/share/svc'
const SESSION: readonly (readonly string[])[] = [
  ['show', 'hf', REPO],
  ['import', 'hf', `${REPO}:Q4_K_M`],
  ['ls'],
  ['path', MODEL],
  ['verify', MODEL],
  ['rm', MODEL],
  ['gc']
]

/** A command and what it printed, after so long. */
export interface Scene {
  readonly typed: string
  readonly printed: readonly string[]
  readonly tookMs: number
}

const LINE_PIXELS = 20
const CHARACTER_PIXELS = 8.4
/** Lines that the window has room for; earlier ones scroll out of it. */
const ROWS = 20
const KEY_MS = 45
const READING_MS = 1_400
/** Nobody looks longer at a command that runs: the machine that records may be busy. */
const PATIENCE_MS = 900
const LAST_MS = 5_000

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

interface FilmLine {
  readonly text: string
  readonly isTyped: boolean
  /** When it begins to show. */
  readonly atMs: number
}

/** When each line shows: commands are typed key by key, and what they print comes as late as it came, or sooner. */
function lined(scenes: readonly Scene[]): { readonly lines: readonly FilmLine[]; readonly wholeMs: number } {
  const lines: FilmLine[] = []
  let atMs = 400
  for (const { typed, printed, tookMs } of scenes) {
    lines.push({ text: `$ ${typed}`, isTyped: true, atMs })
    atMs += typed.length * KEY_MS + Math.min(tookMs, PATIENCE_MS)
    for (const text of [...printed, '']) lines.push({ text, isTyped: false, atMs })
    atMs += READING_MS
  }
  return { lines, wholeMs: atMs + LAST_MS }
}

/** A terminal's window in which the scenes play, over and over; still, and whole, where motion is not wanted. */
export function filmOf(scenes: readonly Scene[]): string {
  const { lines, wholeMs } = lined(scenes)
  const width = Math.ceil(Math.max(...lines.map(({ text }) => text.length)) * CHARACTER_PIXELS) + 40
  const height = ROWS * LINE_PIXELS + 60
  const percent = (ms: number): string => `${((100 * ms) / wholeMs).toFixed(2)}%`
  const styles: string[] = []
  const texts = lines.map(({ text, isTyped, atMs }, i) => {
    const endMs = isTyped ? atMs + text.length * KEY_MS : atMs
    styles.push(
      isTyped
        ? `@keyframes l${i} { 0%, ${percent(atMs)} { clip-path: inset(0 100% 0 0); animation-timing-function: steps(${text.length}) } ${percent(endMs)}, 100% { clip-path: inset(0) } }`
        : `@keyframes l${i} { 0%, ${percent(atMs)} { visibility: hidden } ${percent(atMs + 1)}, 100% { visibility: visible } }`
    )
    const typed = isTyped ? ' class="typed"' : ''
    return `    <text x="20" y="${52 + i * LINE_PIXELS}"${typed} style="animation-name: l${i}" xml:space="preserve">${escapeXml(text)}</text>`
  })
  // of lines that come at once, the last says how far the window scrolls
  const scrolls = new Map(
    lines.flatMap(({ atMs }, i) => (i < ROWS ? [] : [[percent(atMs), (ROWS - 1 - i) * LINE_PIXELS] as const]))
  )
  const steps = [...scrolls].map(([at, pixels]) => `${at} { transform: translateY(${pixels}px) }`)
  const last = `transform: translateY(${Math.min(0, ROWS - lines.length) * LINE_PIXELS}px)`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A recorded terminal" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">
  <style>
    text { fill: #c9d1d9 } .typed { fill: #7ee787; font-weight: 600 }
    .film { ${last} }
    @media (prefers-reduced-motion: no-preference) {
      text, .film { animation: ${wholeMs}ms step-end infinite }
      .film { animation-name: scroll }
      @keyframes scroll { 0% { transform: none } ${steps.join(' ')} 100% { ${last} } }
      ${styles.join('\n      ')}
    }
  </style>
  <clipPath id="window"><rect y="36" width="${width}" height="${height - 44}"/></clipPath>
  <rect width="${width}" height="${height}" rx="10" fill="#161b22"/>
  <circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
  <g clip-path="url(#window)"><g class="film">
${texts.join('\n')}
  </g></g>
</svg>
`
}

/** Plays the session, and records it. */
export async function recorded(): Promise<readonly Scene[]> {
  const stage = new Stage()
  try {
    const hub = await startFakeHub()
    stage.later(() => hub.close())
    const quants = ['Q4_K_M', 'Q8_0']
    hub.commit({
      id: REPO,
      files: quants.map((quant, i) => ({
        path: `Tiny-${quant}.gguf`,
        content: makeLlamaGgufs({ seed: i + 1 })[0] as Buffer
      }))
    })
    const daemon = await stage.daemon('here', `[swarm]\nenabled = false\n\n[hub]\nendpoint = "${hub.endpoint}"\n`)
    const scenes: Scene[] = []
    for (const words of SESSION) {
      const begunMs = performance.now()
      const output = await daemon.svc(...words)
      const printed = output.trimEnd().replaceAll(join(daemon.folder, 'root'), HOME).split('\n')
      scenes.push({ typed: `svc ${words.join(' ')}`, printed, tookMs: Math.round(performance.now() - begunMs) })
    }
    return scenes
  } finally {
    await stage.close()
  }
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../docs/guide/terminal.svg'), filmOf(await recorded()))

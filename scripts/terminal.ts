/**
 * `node --conditions=svc-source scripts/terminal.ts`: writes docs/guide/terminal.svg from a real run of `svcd` and `svc` from the
 * sources, against a hub on loopback with small models. Nothing outside of this machine is asked.
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
  ['import', 'hf', `${REPO}:Q4_K_M`],
  ['ls'],
  ['path', MODEL],
  ['verify', MODEL],
  ['rm', MODEL],
  ['gc']
]

const LINE_PIXELS = 20
const CHARACTER_PIXELS = 8.4
const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** A terminal's window with these lines; those that begin with `$ ` are typed. */
function terminalSvg(lines: readonly string[]): string {
  const width = Math.ceil(Math.max(...lines.map(({ length }) => length)) * CHARACTER_PIXELS) + 40
  const height = lines.length * LINE_PIXELS + 60
  const texts = lines.map((line, i) => {
    const typed = line.startsWith('$ ') ? ' class="typed"' : ''
    return `  <text x="20" y="${52 + i * LINE_PIXELS}"${typed} xml:space="preserve">${escapeXml(line)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A recorded terminal" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">
  <style>text { fill: #c9d1d9 } .typed { fill: #7ee787; font-weight: 600 }</style>
  <rect width="${width}" height="${height}" rx="10" fill="#161b22"/>
  <circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
${texts.join('\n')}
</svg>
`
}

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
  const lines: string[] = []
  for (const words of SESSION) {
    const output = await daemon.svc(...words)
    const shown = output.trimEnd().replaceAll(join(daemon.folder, 'root'), HOME)
    lines.push(`$ svc ${words.join(' ')}`, ...shown.split('\n'), '')
  }
  writeFileSync(join(import.meta.dirname, '../docs/guide/terminal.svg'), terminalSvg(lines.slice(0, -1)))
} finally {
  await stage.close()
}

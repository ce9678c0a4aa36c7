import { encodePath } from '@svc/internal-http'
import type { ListedModel, Listing } from './listing.ts'

/** Key of the human-readable index of a target. */
export const PAGE_KEY = 'index.html'
/** Identifies pages that svc wrote, and may overwrite. */
export const PAGE_MARK = '<meta name="generator" content="svc publish">'

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}
const escaped = (text: string): string => text.replace(/[&<>"']/g, (mark) => ESCAPES[mark]!)

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

function formatBytes(sizeBytes: number): string {
  const unit = sizeBytes < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(sizeBytes) / 3))
  return `${unit === 0 ? sizeBytes : (sizeBytes / 1000 ** unit).toFixed(1)} ${UNITS[unit]}`
}

/** The command that fetches a published model. The magnet link is quoted, since `&` and `?` are special to shells. */
export function importCommand(
  {
    magnet,
    manifest,
    ref,
    withheld,
    opaque,
    companions
  }: Pick<ListedModel, 'magnet' | 'manifest'> & {
    readonly ref?: string | undefined
    readonly companions?: Pick<NonNullable<ListedModel['companions']>, 'digest' | 'infohash'> | undefined
    readonly withheld?: boolean | undefined
    readonly opaque?: boolean | undefined
  },
  url: string | undefined
): string {
  const words = [`svc import bt '${magnet}' --pin ${manifest}`]
  if (companions !== undefined) words.push(`--companions ${companions.digest}@${companions.infohash}`)
  if (url === undefined) words.push("--webseed '<address of this folder>'")
  if (ref !== undefined) words.push(`--as ${ref.split(':')[0]}`)
  if (opaque === true) words.push('--opaque')
  if (withheld === true) words.push('--private')
  return words.join(' ')
}

/** Renders the page; it has no scripts and loads nothing external. */
export function pageBytes({ url, models }: Listing): Uint8Array {
  const rows = models.map((model) => {
    const { ref, manifest, name, magnet, torrent, companions } = model
    const beside = companions?.files.map((file) => ({ ...file, folder: companions.name })) ?? []
    const files = [...model.files.map((file) => ({ ...file, folder: name })), ...beside]
    const sum = files.reduce((total, { sizeBytes }) => total + sizeBytes, 0)
    const items = files.map(
      (file) =>
        `<li><a href="${escaped(encodePath(`${file.folder}/${file.name}`))}">${escaped(file.name)}</a> ${formatBytes(file.sizeBytes)}<br><code>${escaped(file.digest)}</code></li>`
    )
    return `<section>
<h2>${escaped(ref ?? name)}</h2>
<p>${formatBytes(sum)} in ${files.length} file${files.length === 1 ? '' : 's'} · <a href="${escaped(encodePath(torrent))}">.torrent</a> · <a href="${escaped(magnet)}">magnet</a></p>
<pre>${escaped(importCommand(model, url))}</pre>
<details><summary>Files</summary><ul>
${items.join('\n')}
</ul><p>Manifest: <code>${escaped(manifest)}</code></p></details>
</section>`
  })
  return Buffer.from(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${PAGE_MARK}
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Models</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: #f3f3f3; color: #111; padding: .75rem; overflow-x: auto; }
code { font-size: .85em; overflow-wrap: anywhere; }
section { border-top: 1px solid #ccc; }
</style>
</head>
<body>
<h1>Models</h1>
<p>Each command imports a model into a store of <code>svc</code> and verifies it against the digest in the command. Any other client of
BitTorrent v2 can open the .torrent. <a href="index.json">Machine-readable list</a></p>
${rows.join('\n')}
</body>
</html>
`)
}

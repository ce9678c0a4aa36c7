import { encodeKey } from './key.ts'
import type { ListedModel, Listing } from './listing.ts'

/** The list of what a target holds, for people. */
export const PAGE_KEY = 'index.html'
/** By which a page of ours is told from others. */
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

function spoken(sizeBytes: number): string {
  const unit = sizeBytes < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(sizeBytes) / 3))
  return `${unit === 0 ? sizeBytes : (sizeBytes / 1000 ** unit).toFixed(1)} ${UNITS[unit]}`
}

/** What to type to fetch a model from there. Single quotes keep shells from reading the magnet. */
export function importCommand(
  { magnet, manifest, ref }: Pick<ListedModel, 'magnet' | 'manifest'> & { readonly ref?: string | undefined },
  url: string | undefined
): string {
  const from = url === undefined ? " --webseed '<address of this folder>'" : ''
  const name = ref?.split(':')[0]
  return `svc import bt '${magnet}' --pin ${manifest}${from}${name === undefined ? '' : ` --as ${name}`}`
}

/** A page without scripts and without anything from elsewhere. */
export function pageBytes({ url, models }: Listing): Uint8Array {
  const rows = models.map((model) => {
    const { ref, manifest, name, magnet, torrent, files } = model
    const sum = files.reduce((total, { sizeBytes }) => total + sizeBytes, 0)
    const items = files.map(
      (file) =>
        `<li><a href="${escaped(encodeKey(`${name}/${file.name}`))}">${escaped(file.name)}</a> ${spoken(file.sizeBytes)}<br><code>${escaped(file.digest)}</code></li>`
    )
    return `<section>
<h2>${escaped(ref ?? name)}</h2>
<p>${spoken(sum)} in ${files.length} file${files.length === 1 ? '' : 's'} · <a href="${escaped(encodeKey(torrent))}">.torrent</a> · <a href="${escaped(magnet)}">magnet</a></p>
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
<p>Each command brings a model into a store of <code>svc</code>, checked against the digest in it. BitTorrent clients that know version 2 take
the .torrent. <a href="index.json">The same list for programs.</a></p>
${rows.join('\n')}
</body>
</html>
`)
}

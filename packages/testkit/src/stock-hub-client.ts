// The hub's own client in a process of its own: `node stock-hub-client.ts HUB_URL OWNER/NAME CACHE` prints where the snapshot is, in its last line.
import { snapshotDownload } from '@huggingface/hub'

const [hubUrl, name, cacheDir] = process.argv.slice(2) as [string, string, string]
const path = await snapshotDownload({ repo: { type: 'model', name }, hubUrl, cacheDir })
process.stdout.write(`${path}\n`)

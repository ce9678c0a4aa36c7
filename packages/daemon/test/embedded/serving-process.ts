// Serves the store at argv[2] as a hub, beside its owner, says where, and goes on.
import { readLibrary } from '@svc/library'
import { serveModels } from '@svc/mirror'

const reader = await readLibrary({ root: process.argv[2]! })
const { urls } = await serveModels(reader, { hub: {} })
process.stdout.write(`${urls.hub}\n`)
process.stdin.resume()

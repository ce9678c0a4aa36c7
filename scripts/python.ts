/**
 * `node scripts/python.ts`: writes what the Python client takes from docs/openapi.json and from the table of error codes.
 * `node scripts/python.ts check` says what is old; part of `pnpm check`.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ERROR_CODES } from '../packages/client/src/protocol/error-codes.ts'
import { type OpenApi, pythonAioApi, pythonApi, pythonErrors } from './python/generate.ts'

const root = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const folder = 'python/svc-client/src/svc_client'
const api = JSON.parse(readFileSync(root('docs/openapi.json'), 'utf8')) as OpenApi
const routes = pythonApi(api)
const made = { '_api.py': routes, '_aio_api.py': pythonAioApi(routes), '_codes.py': pythonErrors(ERROR_CODES) }

for (const [name, text] of Object.entries(made)) {
  const path = root(`${folder}/${name}`)
  const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined
  if (before === text) continue
  if (process.argv[2] === 'check') {
    console.error(`${folder}/${name} is old; make it again with: node scripts/python.ts`)
    process.exitCode = 1
  } else writeFileSync(path, text)
}

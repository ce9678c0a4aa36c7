import { readFileSync, writeFileSync } from 'node:fs'
import { openApiText, withErrorTable } from './openapi.ts'

const docs = new URL('../../../docs/', import.meta.url)
writeFileSync(new URL('openapi.json', docs), openApiText())
const errors = new URL('errors.md', docs)
writeFileSync(errors, withErrorTable(readFileSync(errors, 'utf8')))

import { readFileSync } from 'node:fs'

export const readVectors = <T>(topic: string): T =>
  JSON.parse(readFileSync(new URL(`../../../vectors/${topic}.json`, import.meta.url), 'utf8')) as T

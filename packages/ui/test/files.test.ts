// What a browser is sent.
import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { DIRECTORY, FILES } from '@svc/ui'
import { expect, test } from 'vitest'

const read = (name: string): string => readFileSync(new URL(name, DIRECTORY), 'utf8')

test('the list has all files that were built', () => {
  expect(readdirSync(DIRECTORY).sort()).toEqual(Object.keys(FILES).sort())
})

test('all files together stay below 150 KiB gzipped', () => {
  const sizes = Object.keys(FILES).map((name) => gzipSync(read(name)).length)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150 * 1024)
})

test('no file refers to another origin, and none has inline scripts', () => {
  const html = read('index.html')
  const addresses = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address)
  expect(addresses.filter((address) => !Object.hasOwn(FILES, address!))).toEqual([])
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/)
  expect(read('page.css')).not.toMatch(/url\(|@import/)
})

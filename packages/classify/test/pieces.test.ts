import { expect, test } from 'vitest'
import { pieceSets } from '../src/index.ts'

test.each([
  [
    ['X.gguf.part2of2', 'X.gguf.part1of2'],
    ['X.gguf.part1of2', 'X.gguf.part2of2']
  ],
  [
    ['a/X.gguf.part01of03', 'a/X.gguf.part03of03', 'a/X.gguf.part02of03'],
    ['a/X.gguf.part01of03', 'a/X.gguf.part02of03', 'a/X.gguf.part03of03']
  ],
  [
    ['X.gguf-split-b', 'X.gguf-split-a'],
    ['X.gguf-split-a', 'X.gguf-split-b']
  ],
  [
    ['X.gguf-split-ab', 'X.gguf-split-aa'],
    ['X.gguf-split-aa', 'X.gguf-split-ab']
  ],
  [
    ['X.gguf.001', 'X.gguf.000'],
    ['X.gguf.000', 'X.gguf.001']
  ],
  [
    ['X.gguf.part-02', 'X.gguf.part-01'],
    ['X.gguf.part-01', 'X.gguf.part-02']
  ]
])('%j are one file', (names, pieces) => {
  expect(pieceSets(names)).toEqual([{ name: pieces[0]!.replace(/\.gguf.*/, '.gguf'), pieces }])
})

test.each([
  [['X.gguf.part1of3', 'X.gguf.part2of3']],
  [['X.gguf.part2of2']],
  [['X.gguf.001', 'X.gguf.003']],
  [['X.gguf.002', 'X.gguf.003']],
  [['X.gguf-split-a']],
  [['X.gguf-split-b', 'X.gguf-split-c', 'X.gguf-split-d'].slice(1)],
  [['X.gguf', 'X.gguf.part1of2', 'X.gguf.part2of2']],
  [['X.gguf.001', 'X.gguf.002', 'X.gguf.part1of2', 'X.gguf.part2of2']],
  [['X-00001-of-00002.gguf', 'X-00002-of-00002.gguf']]
])('%j are not', (names) => {
  expect(pieceSets(names)).toEqual([])
})

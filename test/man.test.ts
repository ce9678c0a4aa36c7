// The man page of svc is made from its commands: what was added last is in it.
import { expect, it } from 'vitest'
import { svcPage } from '../scripts/dist/man.ts'

it.each(['why', 'private', 'backup', 'restore', '--replace', '--withheld'])('svc.1 has %s', (words) => {
  const heads = svcPage('1.2.3')
    .split('\n')
    .map((line) => line.replaceAll('\\-', '-'))
    .filter((line) => line.startsWith('\\fB'))
  expect(heads.filter((line) => line.startsWith(`\\fB${words}\\fR`))).not.toEqual([])
})

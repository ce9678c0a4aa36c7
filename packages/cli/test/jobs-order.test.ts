import type { Job } from '@svc/client'
import { expect, test } from 'vitest'
import { towardsPrompt } from '../src/commands/jobs.ts'

const job = (id: string, state: Job['state']): Job => ({
  id,
  state,
  kind: 'import-hf',
  ref: 'acme/m',
  createdAt: '2026-01-01T00:00:00.000Z'
})

test('svc jobs shows what runs last, next to the prompt, and before it the newest', () => {
  const newestFirst = [job('4', 'done'), job('3', 'fetching'), job('2', 'failed'), job('1', 'waiting')]
  expect(towardsPrompt(newestFirst).map(({ id }) => id)).toEqual(['2', '4', '1', '3'])
})

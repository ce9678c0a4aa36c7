import { expect } from 'vitest'
import type { TestDaemon } from '../support/daemon.ts'

export async function makeView(daemon: Pick<TestDaemon, 'post'>, body: object) {
  const { status, body: view } = await daemon.post('/v1/views', body)
  expect([status, view.error]).toEqual([200, undefined])
  return view
}
export const viewsOf = async (daemon: Pick<TestDaemon, 'get'>) => (await daemon.get('/v1/views')).body.views
export async function refused(answer: ReturnType<TestDaemon['call']>) {
  const { status, body } = await answer
  return [status, body.error?.code]
}
export const remove = (daemon: Pick<TestDaemon, 'call'>, path: string, ref?: string) =>
  daemon.call('DELETE', '/v1/views', { body: { path, ref } })
export const held = async (daemon: TestDaemon) => [
  ...new Set((await daemon.running.context.views.held(() => undefined)).map(({ manifest }) => manifest))
]

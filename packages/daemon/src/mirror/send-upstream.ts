import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OnDemand } from './on-demand.ts'
import { readerOf } from './send-file.ts'
import { type SendGrowingOptions, sendGrowing } from './send-growing.ts'
import type { UpstreamFile, UpstreamRepo } from './upstream.ts'

/**
 * Responds to GET or HEAD for an upstream file. A HEAD, and anything else that needs no bytes, fetches nothing. A large
 * file is sent while it arrives. @returns false if it may not be given any longer; nothing was sent then. @throws NotNowError
 */
export async function sendUpstream(
  request: IncomingMessage,
  response: ServerResponse,
  repo: UpstreamRepo,
  file: UpstreamFile,
  { onDemand, ...options }: SendGrowingOptions & { readonly onDemand: OnDemand }
): Promise<boolean> {
  const host = request.socket.remoteAddress ?? ''
  const open = async (start: number) =>
    file.isLarge ? onDemand.large(repo, file, start, host) : readerOf(await onDemand.small(repo, file, host))
  return sendGrowing(request, response, file, open, options)
}

import type { BridgeRequest } from '@svc/internal-bridge'
import type { Session } from '../session.ts'

export interface PageRequest extends BridgeRequest {
  readonly session: Session
  readonly params: Readonly<Record<string, string>>
}

export type PageRoute = (request: PageRequest) => Promise<unknown>

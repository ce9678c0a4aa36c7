import { HttpClient } from '@svc/internal-http'

/**
 * The `Date` of a web server's answer: the clock by which a bucket judges signatures. Undefined if the answer has none.
 * @throws errors of the network; on abort the signal's reason
 */
export async function serverDate(url: string, signal: AbortSignal): Promise<string | undefined> {
  const http = new HttpClient()
  try {
    const answer = await http.send({ url: new URL(url), method: 'HEAD', signal, policy: 'owner' })
    answer.destroy()
    return answer.header('date')
  } finally {
    await http.close()
  }
}

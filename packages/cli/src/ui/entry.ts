/**
 * What anybody sees who has no session: a refusal, whose script redeems the token behind `#`. A fragment is in no
 * request, so no log or `Referer` has it, and no fetch ahead of a click uses it up.
 */
export const ENTRY = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>svc</title>
<link rel="icon" href="data:,">
<script type="module" src="/enter.js"></script>
<h1>svc</h1>
<p role="status">This page opens with the link that “svc ui” prints. Each link works once; press Enter there for a new one.</p>
</html>
`

export const ENTRY_SCRIPT = `const token = location.hash.slice(1)
if (token !== '') {
  history.replaceState(null, '', '/')
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch('/session', { method: 'POST', headers, body: JSON.stringify({ token }) })
  if (answer.ok) location.replace((await answer.json()).path)
}
`

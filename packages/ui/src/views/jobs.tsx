export function JobsView() {
  return null
}

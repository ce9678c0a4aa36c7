/** `Content-Type` of Prometheus' text format. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

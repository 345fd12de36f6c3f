"use strict";
// Requests that are tried on this page go by the session of whoever is logged in, or by a token entered here.
const cookie = (name) => document.cookie.split("; ").find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1);
// Swagger UI is dark where its class says so, and not by what the browser prefers.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", dress);
dress();
const main = document.getElementById("api");
SwaggerUIBundle({
  url: main.dataset.schema,
  domNode: main,
  deepLinking: true,
  docExpansion: "none",
  validatorUrl: null, // asks no other host
  requestInterceptor: (request) => {
    const token = cookie(document.querySelector("meta[name=csrf-cookie]").content);
    if (token && new URL(request.url, location.href).origin === location.origin) request.headers["X-CSRFToken"] = token;
    return request;
  },
});
